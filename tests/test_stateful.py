"""The machine of one job, and the job manager on top of it, against the oracle: legal and illegal events, any order.

An event that the oracle calls a violation must raise with that code and change nothing; any other must lead to the
state that the oracle is in. In each state that comes up all kinds of events are tried besides (``probes``).
A failure shows the log that leads to it, in a form that ``partialrelease explain`` reads.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import evolve
from exercised import EXERCISED, LEGAL, missing, table, unforeseen
from hypothesis import Phase as Find
from hypothesis import note, settings, target
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from oracle import Oracle

from partialrelease import (
    ALL_RANKS,
    NO_RANKS,
    Alloc,
    Clean,
    Code,
    Depend,
    Entry,
    EpilogFinish,
    EpilogStart,
    Event,
    Exec,
    Finish,
    Free,
    HolderKind,
    IdSet,
    Job,
    JobException,
    LastRank,
    Malformed,
    PartialFree,
    Phase,
    Priority,
    PrologFinish,
    PrologStart,
    ProtocolViolation,
    Release,
    Start,
    Submit,
    Validate,
    apply,
    check_entries,
    decide,
    effect,
    guard,
    read_log,
    to_context,
    write_log,
)
from partialrelease import job as job_module
from partialrelease.__main__ import main
from partialrelease.invariants import STATE_RULES, STEP_RULES, EarlyRelease, ReplayIsState
from partialrelease.strategies import DESCRIPTIONS, idsets, probes, subsets

FEW = 4  # holders, up to which the rules look at every order in which they may finish
SMALL = 64  # ranks, up to which all kinds of events are tried in each state

SHORT = [Submit(), Alloc(), Finish(), Release(final=True), EpilogStart("off-node", NO_RANKS)]
ORDINARY = [Submit(), Validate(), Depend(), Priority(), Alloc(), Start(), *SHORT[2:]]
PROLOG = [Submit(), PrologStart("a"), *ORDINARY[1:5], PrologFinish("a"), Start(), Release(), *SHORT[2:]]
CANCELLED = [Submit(), Alloc(), JobException("cancel", 0), EpilogStart("early", NO_RANKS), *SHORT[3:]]
CROSSED = [Submit(), PrologStart("a"), JobException("cancel", 0), Alloc(), PrologFinish("a"), SHORT[4]]
LIVES = [SHORT, ORDINARY, PROLOG, CANCELLED, CROSSED]


class DisagreementError(AssertionError):
    """The code and the oracle, or the code and a rule, disagree. The message ends with the log, as a journal."""

    def __init__(self, what: str, log: list[Event]) -> None:
        stream = io.StringIO()
        write_log((Entry(n, 1, float(n), event) for n, event in enumerate(log, 1)), stream, "journal")
        super().__init__(f"{what}\n{stream.getvalue()}")


def entry_of(event: Event) -> tuple[dict[str, Any], list[int]]:
    """The entry as JSON would have it, and the ranks of R."""
    return {"name": event.name, "context": to_context(event)}, list(event.ranks) if isinstance(event, Alloc) else []


State = dict[str, Any]


def state_of_job(job: Job) -> State:
    """The job in the oracle's terms."""
    count = dict.fromkeys(job.allocation, 0)
    for holder in job.holders:
        for rank in holder.ranks if job.allocation else ():
            count[rank] += 1
    pending = not job.allocation
    return {
        "phase": job.phase.value,
        "exec": job.exec.value,
        "exec has": set(job.exec_ranks) if not pending else set(),
        "actions": [
            (h.kind.value, h.description, set() if pending else set(h.ranks), pending and h.ranks == ALL_RANKS)
            for h in job.actions
        ],
        "held": set(job.held),
        "released": set(job.released),
        "lost": set(job.lost),
        "count": count,
        "over": job.closed,
        "referenced": set(job.referenced),
        "gate open": job.gate_open,
        "releasable": set(job.releasable),
    }


def state_of_oracle(oracle: Oracle) -> State:
    return {
        "phase": oracle.phase,
        "exec": oracle.exec,
        "exec has": oracle.exec_has,
        "actions": [(h.kind, h.description, h.ranks, h.to_come) for h in oracle.actions],
        "held": oracle.ranks("held"),
        "released": oracle.ranks("released"),
        "lost": oracle.ranks("lost"),
        "count": oracle.count,
        "over": oracle.over,
        "referenced": oracle.referenced(),
        "gate open": oracle.gate_open(),
        "releasable": oracle.releasable(),
    }


def differences(job: Job, oracle: Oracle) -> str:
    ours, theirs = state_of_job(job), state_of_oracle(oracle)
    return "; ".join(f"{key}: {ours[key]}, oracle: {theirs[key]}" for key in ours if ours[key] != theirs[key])


def broken_rules(before: Job, event: Event, after: Job, in_use: set[int]) -> list[str]:
    """The rules that a step breaks, by their names. ``in_use``: on what the oracle counts references."""
    rules = STATE_RULES if len(after.holders) <= FEW else {"EarlyRelease": EarlyRelease}
    broken = [name for name, rule in STEP_RULES.items() if not rule(before, event, after)]
    broken += [name for name, rule in rules.items() if not rule(after)]
    new = after.released - before.released
    return broken if in_use.isdisjoint(new) else ["NoReleaseWhileReferenced", *broken]


class Life(RuleBasedStateMachine):
    """What may happen to one job."""

    counted = False  # whether what is exercised is
    goes_on = False  # after a violation, as who checks a log does
    probed: ClassVar[set[tuple[Job, bool]]] = set()  # states in which everything was tried, and all was well

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Event] = []
        self.most_holders = self.most_runs = 0
        self.queue: list[Event] = []  # what plugins have posted and the job manager has not applied yet
        self.must_see_all: list[Event] = []  # epilog-starts that were in it when the gate opened

    @initialize(
        last_rank=st.sampled_from([LastRank.KEEP, *LastRank]),
        life=st.sampled_from(LIVES),
        done=st.sampled_from([*range(12), 11, 11]),
        ranks=idsets(min_size=1),
    )
    def begin(self, last_rank: LastRank, life: list[Event], done: int, ranks: IdSet) -> None:
        """The first events of an ordinary or a short life: random events alone seldom bring a job far."""
        self.job = Job(last_rank)
        self.oracle = Oracle(last_rank.value)
        for event in life[:done]:
            self.everything_can_be_tried()
            self.step(Alloc(ranks) if isinstance(event, Alloc) else event)

    # -- a step, and what must be true of it --

    def fail(self, what: str, *events: Event) -> None:
        raise DisagreementError(what, [*self.log, *events])

    def event(self, event: Event) -> None:
        """Something posts this event."""
        self.step(event)

    def step(self, event: Event) -> None:
        before, oracle = self.job, self.oracle
        entry, r = entry_of(event)
        code = self.judged(event, entry, r)
        if code is not None and not (self.goes_on and self.can_go_on(event)):
            return
        in_use = oracle.referenced()
        self.job = effect(before, event)
        oracle.happen(entry, r)
        self.log.append(event)
        if not self.goes_on and (rules := broken_rules(before, event, self.job, in_use)):
            self.fail(f"{', '.join(rules)} broken by {event}")
        if difference := differences(self.job, oracle):
            self.fail(f"after {event}: {difference}")
        self.most_holders = max(self.most_holders, len(self.job.holders))
        self.most_runs = max(self.most_runs, sum(1 for _ in self.job.held.runs()))

    def can_go_on(self, event: Event) -> bool:
        """Whether the specification says what then is the case."""
        if isinstance(event, Malformed) or event == Alloc(NO_RANKS) or self.job.phase is Phase.UNBORN:
            return False
        return bool(self.job.allocation) or not isinstance(event, Release) or event.ranks == ALL_RANKS

    def judged(self, event: Event, entry: dict[str, Any], r: list[int]) -> str | None:
        """What `apply` says of the event; the oracle must agree, and a violation change nothing."""
        job = self.job
        predicted = self.oracle.verdict(entry, r)
        code = None
        try:
            after = apply(job, event)
        except ProtocolViolation as violation:
            code, after = violation.code.value, self.job
        if self.counted:
            EXERCISED[event.name, job.phase.value, code or LEGAL] += 1
        if code != predicted:
            self.fail(f"{event} is {code or LEGAL}, but the oracle says {predicted or LEGAL}", event)
        if (after is job) if code is None else (after is not job):
            changes_nothing = after == effect(job, event)
            if not changes_nothing:
                self.fail(f"{event}: apply and effect differ", event)
        return code

    @invariant()
    def everything_can_be_tried(self) -> None:
        key = self.job, self.goes_on
        if len(self.job.allocation) > SMALL or key in self.probed:
            return
        for event in probes(self.job):
            entry, r = entry_of(event)
            code = self.judged(event, entry, r)
            if code is None or (self.goes_on and self.can_go_on(event)):
                fork = self.oracle.copy()
                fork.happen(entry, r)
                if difference := differences(effect(self.job, event), fork):
                    self.fail(f"after {event}: {difference}", event)
        self.probed.add(key)

    def teardown(self) -> None:
        if not self.goes_on and not ReplayIsState(self.log, self.job):
            self.fail("ReplayIsState broken")
        target(float(self.most_holders), label="holders at a time")
        target(float(self.most_runs), label="runs of held ranks")

    # -- events: most of them legal, with ranks of all kinds; the others by `anything` --

    @precondition(lambda self: self.job.phase is not Phase.INACTIVE)
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """Something that may happen, and changes something."""
        may = [e for e in probes(self.job) if guard(self.job, e) is None and effect(self.job, e) != self.job]
        self.one_of(may, data)

    @rule(data=st.data())
    def anything(self, data: st.DataObject) -> None:
        self.one_of(probes(self.job), data)

    def one_of(self, events: list[Event], data: st.DataObject) -> None:
        event = events[data.draw(st.integers(0, len(events) - 1))]  # `sampled_from` would hash them all
        note(str(event))
        self.event(event)

    @precondition(lambda self: not self.job.allocation)
    @rule(ranks=idsets())
    def alloc(self, ranks: IdSet) -> None:
        self.event(Alloc(ranks))

    @rule(severity=st.sampled_from([0, 1, 7]), type_=st.sampled_from(["cancel", "scheduler-restart"]))
    def exception(self, severity: int, type_: str) -> None:
        self.event(JobException(type_, severity))

    @precondition(lambda self: self.job.exec is Exec.IDLE or self.job.exec is Exec.REQUESTED)
    @rule(description=st.sampled_from(DESCRIPTIONS))
    def prolog_start(self, description: str) -> None:
        self.event(PrologStart(description))

    @precondition(lambda self: self.job.exec is not Exec.IDLE and self.job.exec is not Exec.DONE)
    @rule(final=st.booleans(), data=st.data())
    def exec_release(self, final: bool, data: st.DataObject) -> None:
        self.event(Release(self.some(data, self.job.exec_ranks & self.job.held), final))

    @precondition(lambda self: self.job.phase is Phase.CLEANUP)
    @rule(description=st.sampled_from(DESCRIPTIONS), data=st.data())
    def epilog_start(self, description: str, data: st.DataObject) -> None:
        ranks = None if data.draw(st.booleans(), "all") else self.some(data, self.job.held)
        self.event(EpilogStart(description, ranks))

    @precondition(lambda self: any(h.kind is HolderKind.EPILOG for h in self.job.actions))
    @rule(data=st.data())
    def epilog_release(self, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from([h for h in self.job.actions if h.kind is HolderKind.EPILOG]), "holder")
        self.event(Release(self.some(data, holder.ranks & self.job.held), False, holder.description))

    @precondition(lambda self: self.job.actions)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from(self.job.actions), "holder")
        end = PrologFinish if holder.kind is HolderKind.PROLOG else EpilogFinish
        self.event(end(holder.description))

    @precondition(lambda self: self.job.holders and self.job.phase is Phase.CLEANUP)
    @rule(data=st.data())
    def partial_free(self, data: st.DataObject) -> None:
        of = self.job.releasable or self.job.held or IdSet("17")
        self.event(PartialFree(data.draw(subsets(of), "ranks")))

    def some(self, data: st.DataObject, of: IdSet) -> IdSet:
        """Most often some of these ranks; all of them; or some that are the job's or nobody's, whose ever they are."""
        kind = data.draw(st.sampled_from(["of these", "of these", "all", "any"]), "which")
        if kind == "all":
            return ALL_RANKS
        return data.draw(subsets(of if kind == "of these" else self.job.allocation | IdSet("17")), "ranks")


class JobMachine(Life):
    """Violations change nothing."""

    counted = True


class CheckMachine(Life):
    """Violations happen: `check` goes on from what then is the case."""

    goes_on = True


class ManagerMachine(Life):
    """A job, its manager, and the events that plugins have posted and the manager has not applied yet."""

    counted = True

    def event(self, event: Event) -> None:
        if not isinstance(event, PartialFree | Free | Clean):  # those are the manager's own
            self.queue.append(event)

    @precondition(lambda self: self.queue)
    @rule()
    def apply_next(self) -> None:
        event = self.queue.pop(0)
        gate, begun = self.job.gate_open, len(self.log)
        self.step(event)
        if self.job.gate_open and not gate:
            self.must_see_all = [e for e in self.queue if isinstance(e, EpilogStart)]
        if len(self.log) > begun and any(event is e for e in self.must_see_all):
            assert isinstance(event, EpilogStart)
            if event.ranks in (None, ALL_RANKS) and self.job.actions[-1].ranks != self.job.allocation - self.job.lost:
                self.fail(f"QueuedEpilogSeesAll broken by {event}")

    @rule()
    def manage(self) -> None:
        event = decide(self.job, self.queue)
        expected = self.oracle.decision([entry_of(queued)[0] for queued in self.queue])
        said = event and (event.name, set(event.ranks) if isinstance(event, PartialFree) else set())
        if said != expected:
            self.fail(f"decide says {said}, but the oracle says {expected}")
        if event is None:
            return
        begun = len(self.log)
        self.step(event)
        if len(self.log) == begun:
            self.fail(f"what was decided is illegal: {event}")

    def teardown(self) -> None:
        """EventuallyClean: when every holder finishes, every rank is handed over (or was lost) and the job ends."""
        self.queue.clear()
        self.manage()
        endings = [JobException("cancel", 0), Release(final=True), Finish(), Release(final=True)]
        if self.job.phase is Phase.UNBORN:
            endings.insert(0, Submit())
        for holder in self.job.actions:
            end = PrologFinish if holder.kind is HolderKind.PROLOG else EpilogFinish
            endings.append(end(holder.description))
        for event in endings:
            self.step(event)
            self.manage()
        for _ in range(3):
            self.manage()
        if self.job.phase is not Phase.INACTIVE or self.job.held:
            self.fail(f"EventuallyClean broken: {self.job}")
        super().teardown()


def test_the_job_does_what_the_oracle_says() -> None:
    run_state_machine_as_test(JobMachine, settings=at_least(40))


def test_going_on_after_violations_leads_where_the_oracle_says() -> None:
    run_state_machine_as_test(CheckMachine, settings=at_least(25))


def test_job_and_manager_do_what_the_oracle_says() -> None:
    run_state_machine_as_test(ManagerMachine, settings=at_least(40))


@pytest.mark.parametrize("last_rank", LastRank)
@pytest.mark.parametrize("life", LIVES)
def test_everything_that_can_be_tried_in_a_whole_life_is_what_the_oracle_says(
    life: list[Event], last_rank: LastRank
) -> None:
    whole = [*life, EpilogFinish("early"), EpilogFinish("off-node"), Free(), Clean()]
    for ranks in (IdSet("0"), IdSet("3,5-6")):
        machine = JobMachine()
        machine.begin(last_rank, whole, len(whole), ranks)
        machine.everything_can_be_tried()
        assert machine.job.phase is Phase.INACTIVE


def at_least(examples: int) -> settings:
    return settings(max_examples=max(examples, settings().max_examples))


def test_every_event_in_every_phase_and_every_violation_was_exercised() -> None:
    """By the tests above, counted. The table is printed with ``-v``."""
    if not EXERCISED:  # this test alone
        test_the_job_does_what_the_oracle_says()
        for life in (SHORT, ORDINARY, PROLOG, CANCELLED):
            test_everything_that_can_be_tried_in_a_whole_life_is_what_the_oracle_says(life, LastRank.KEEP)
        test_job_and_manager_do_what_the_oracle_says()
    assert missing() == [], table()
    assert unforeseen() == [], table()
    assert {code.value for code in Code} | {LEGAL} == {what for _, _, what in EXERCISED}


# -- what a failure looks like --


def finishes_are_counted(job: Job, event: EpilogFinish) -> Job:
    """Today's Flux: the finish of any epilog ends some hold."""
    epilogs = [h for h in job.actions if h.kind is HolderKind.EPILOG]
    return evolve(job, actions=tuple(h for h in job.actions if h is not epilogs[0])) if epilogs else job


def any_epilog_is_active(job: Job, event: EpilogFinish) -> ProtocolViolation | None:
    if any(h.kind is HolderKind.EPILOG for h in job.actions):
        return None
    return ProtocolViolation(Code.UnknownHolder, event, "no epilog is active")


class FaultyJob(Life):
    probed: ClassVar[set[tuple[Job, bool]]] = set()


def test_a_planted_fault_is_shown_as_a_short_log_that_explain_reads(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Not the phase that explains, nor other faults: so it takes seconds.
    look = settings(max_examples=500, stateful_step_count=15, database=None, derandomize=True)
    short = settings(look, phases=[Find.generate, Find.shrink], report_multiple_bugs=False)
    with monkeypatch.context() as planted:
        planted.setitem(job_module._RULES, EpilogFinish, (any_epilog_is_active, finishes_are_counted))
        with pytest.raises(
            DisagreementError, match=r"EpilogFinish\(.*\) is legal, but the oracle says UnknownHolder"
        ) as failure:
            run_state_machine_as_test(FaultyJob, settings=short)
    printed = str(failure.value).splitlines()[1:]
    assert len(printed) <= 8
    log = tmp_path / "log"
    log.write_text("\n".join([*printed, ""]))

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.argv", ["partialrelease", "explain", str(log)])
    with pytest.raises(SystemExit):
        main()
    out, err = capsys.readouterr()
    assert err == ""
    assert "UnknownHolder" in out
    (report,) = check_entries(read_log(str(log)))
    assert [finding.violation.code.value for finding in report.findings] == ["UnknownHolder"]
