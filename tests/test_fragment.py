"""A log whose beginning is cut off: nothing is found that the missing part could explain, and the rest still is."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from partialrelease import (
    ALL_RANKS,
    NO_RANKS,
    Alloc,
    Clean,
    Code,
    Depend,
    EpilogFinish,
    EpilogStart,
    Event,
    Exec,
    Finish,
    Fragment,
    Free,
    Holder,
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
    Unknown,
    Urgency,
    Validate,
    apply,
    guard,
    make_event,
)

LOGS = {path.stem: path for path in sorted((Path(__file__).parent / "data" / "eventlogs").glob("*.eventlog"))}
BROKEN = {"unmatched-finish", "dup-description", "H-free-context"}
CLEAN = sorted(LOGS.keys() - BROKEN)

Found = list[tuple[int, Code]]


def ranks_of(name: str) -> IdSet:
    r = LOGS[name].with_suffix(".R")
    return IdSet(json.loads(r.read_text())["execution"]["R_lite"][0]["rank"]) if r.exists() else ALL_RANKS


def events_of(name: str, ranks: IdSet) -> list[Event]:
    entries = map(json.loads, LOGS[name].read_text().splitlines())
    return [make_event(entry["name"], entry.get("context"), ranks) for entry in entries]


def replay(
    log: list[Event], cut: int, ranks: IdSet, last_rank: LastRank = LastRank.KEEP, *, running: bool = False
) -> tuple[Fragment, Found]:
    """What is found in the log without its first ``cut`` events; places count from the whole log's beginning."""
    fragment = Fragment.of(last_rank, ranks, running=running)
    found = []
    for place, event in enumerate(log[cut:], cut):
        job = Job()
        try:
            job = fragment.apply(event)
        except ProtocolViolation as violation:
            found.append((place, violation.code))
        else:
            assert job is fragment.job
    return fragment, found


def whole(log: list[Event], last_rank: LastRank = LastRank.KEEP) -> Job:
    job = Job(last_rank)
    for event in log:
        job = apply(job, event)
    return job


def is_legal(log: list[Event], last_rank: LastRank) -> bool:
    try:
        whole(log, last_rank)
    except ProtocolViolation:
        return False
    return True


# A job with a prolog, a cancel while it runs, epilogs on parts, and ranks that go back one part at a time.
R = IdSet("0-3")
SYNTHETIC: list[Event] = [
    Submit(),
    Validate(),
    Depend(),
    Priority(),
    PrologStart("early"),
    Alloc(R),
    PrologStart("prolog"),
    PrologFinish("early"),
    PrologFinish("prolog"),
    Start(),
    JobException("note", 3),
    JobException("cancel", 0),
    EpilogStart("all"),
    EpilogStart("storage", NO_RANKS),
    Release(IdSet("0"), final=False),
    Finish(9),
    EpilogStart("part", IdSet("1-2")),
    Release(ALL_RANKS, final=True),
    Release(IdSet("0,3"), description="all"),
    PartialFree(IdSet("0,3")),
    Release(IdSet("1"), description="part"),
    Release(IdSet("1"), description="all"),
    PartialFree(IdSet("1")),
    EpilogFinish("all"),
    EpilogFinish("part"),
    Unknown("debug.x"),
    EpilogFinish("storage"),
    Free(),
    Clean(),
]
# A cancel while a prolog runs: the job never starts.
NEVER_STARTED: list[Event] = [
    Submit(),
    Validate(),
    Depend(),
    Priority(),
    Urgency(),
    Priority(),
    Alloc(R),
    PrologStart("prolog"),
    JobException("cancel", 0),
    EpilogStart("epilog"),
    PrologFinish("prolog", 1),
    Release(IdSet("1-2"), description="epilog"),
    PartialFree(IdSet("1")),
    PartialFree(IdSet("2")),
    EpilogFinish("epilog"),
    Free(),
    Clean(),
]
SYNTHETICS = {"synthetic": SYNTHETIC, "never started": NEVER_STARTED}


def with_alloc(log: list[Event], ranks: IdSet) -> list[Event]:
    return [Alloc(ranks) if isinstance(event, Alloc) else event for event in log]


# -- nothing is found that the missing part could explain --


LENGTHS = {name: len(LOGS[name].read_text().splitlines()) for name in CLEAN} | {
    name: len(log) for name, log in SYNTHETICS.items()
}
CUTS = [(name, cut) for name, length in LENGTHS.items() for cut in range(1, length)]


@pytest.mark.parametrize("known", [True, False], ids=["R known", "R not known"])
@pytest.mark.parametrize(("name", "cut"), CUTS)
def test_every_end_of_a_clean_log_is_clean(name: str, cut: int, known: bool) -> None:
    if name in SYNTHETICS:
        ranks = R if known else ALL_RANKS
        log = with_alloc(SYNTHETICS[name], ranks)
    else:
        ranks = ranks_of(name) if known else ALL_RANKS
        log = events_of(name, ranks)
    assert whole(log).phase is Phase.INACTIVE
    fragment, found = replay(log, cut, ranks)
    assert found == []
    assert fragment.job.phase is Phase.INACTIVE


PARTS = [IdSet(text) for text in ("0", "1", "2", "0-1", "1-2", "0,2", "0-2")]
OF_ALL = IdSet("0-2")
POOL: list[Event] = [
    Urgency(),
    Priority(),
    Alloc(OF_ALL),
    Start(),
    Finish(),
    Finish(),
    Free(),
    Clean(),
    JobException("cancel", 0),
    JobException("note", 1),
    # No "scheduler-restart": whether it loses referenced ranks depends on what the exec system dropped before the cut.
    Release(),
    Release(final=True),
    Release(final=True),
    *(PartialFree(part) for part in PARTS),
    *(Release(part) for part in PARTS),
    *(PrologStart(name) for name in "ab"),
    *(PrologFinish(name) for name in "ab"),
    *(EpilogStart(name) for name in "ab"),
    *(EpilogStart(name, part) for name in "ab" for part in [NO_RANKS, ALL_RANKS, *PARTS]),
    *(EpilogFinish(name) for name in "ab"),
    *(Release(part, description=name) for name in "ab" for part in [ALL_RANKS, *PARTS]),
]


@st.composite
def legal_logs(draw: st.DrawFn) -> tuple[LastRank, list[Event]]:
    """Any walk of the machine, most often into CLEANUP."""
    last_rank = draw(st.sampled_from(LastRank))
    log: list[Event] = [Submit(), Validate(), Depend(), Priority(), Alloc(OF_ALL), Start(), Finish()]
    log = log[: draw(st.sampled_from([7, 6, 5, 4, 2]))]
    job = whole(log, last_rank)
    for _ in range(draw(st.integers(0, 16))):
        legal = [
            event
            for event in POOL
            if guard(job, event) is None
            # These tell that a fragment begins before CLEANUP, as they all but always do.
            and not (job.phase is Phase.CLEANUP and isinstance(event, Start | Alloc))
        ]
        if not legal:
            break
        log.append(draw(st.sampled_from(legal)))
        job = apply(job, log[-1])
    return last_rank, log


RELEASED_IN_PARTS: list[Event] = [
    Submit(),
    Validate(),
    Depend(),
    Priority(),
    Alloc(OF_ALL),
    Start(),
    Finish(),
    Release(IdSet("0")),
    Release(final=True),
]


@pytest.mark.slow
@given(legal_logs(), st.booleans())
@example((LastRank.KEEP, RELEASED_IN_PARTS), True)
def test_every_end_of_any_legal_log_is_clean(legal: tuple[LastRank, list[Event]], known: bool) -> None:
    last_rank, log = legal
    ranks = OF_ALL if known else ALL_RANKS
    log = with_alloc(log, ranks)
    assume(is_legal(log, last_rank))  # of ranks that are not known nobody can tell that all were named
    for cut in range(1, len(log)):
        _, found = replay(log, cut, ranks, last_rank)
        assert (cut, found) == (cut, [])


def only_in_cleanup(event: Event) -> bool:
    of_an_epilog = isinstance(event, Release) and event.description is not None
    return of_an_epilog or isinstance(event, EpilogStart | EpilogFinish | PartialFree | Free | Clean)


def not_yet_explained(missing: list[Event], rest: list[Event]) -> bool:
    """What the two tests below state: the exec system gave ranks back in parts, or was never asked."""
    in_parts = any(isinstance(e, Release) and e.description is None and not e.final for e in missing)
    return in_parts or any(isinstance(e, PrologStart) for e in rest)


@given(legal_logs(), st.booleans())
def test_every_end_that_shows_at_once_that_it_begins_in_cleanup_is_clean(
    legal: tuple[LastRank, list[Event]], known: bool
) -> None:
    last_rank, log = legal
    ranks = OF_ALL if known else ALL_RANKS
    log = with_alloc(log, ranks)
    assume(is_legal(log, last_rank))  # of ranks that are not known nobody can tell that all were named
    for cut in range(1, len(log)):
        if only_in_cleanup(log[cut]) and not not_yet_explained(log[:cut], log[cut:]):
            _, found = replay(log, cut, ranks, last_rank)
            assert (cut, found) == (cut, [])


def test_the_exec_system_may_have_released_ranks_in_the_missing_part() -> None:
    rest: list[Event] = [EpilogStart("a", NO_RANKS), PartialFree(IdSet("1")), Release(final=True)]
    missing: list[Event] = [*RELEASED_IN_PARTS[:7], Release(IdSet("1"))]
    whole([*missing, *rest])  # raises nothing
    assert replay(rest, 0, OF_ALL)[1] == []


def test_the_exec_system_may_never_have_been_asked() -> None:
    missing: list[Event] = [Submit(), JobException("cancel", 0), Alloc(OF_ALL)]
    rest: list[Event] = [EpilogStart("a", IdSet("0")), PartialFree(IdSet("1")), PrologStart("p")]
    whole([*missing, *rest])  # raises nothing
    assert replay(rest, 0, OF_ALL)[1] == []


def test_a_job_that_was_cancelled_before_its_start_may_still_start() -> None:
    rest: list[Event] = [EpilogFinish("a"), Start(), Finish(), Release(final=True), Free(), Clean()]
    assert replay(rest, 0, R)[1] == []


def test_a_job_that_only_goes_clean_has_handed_over_its_ranks() -> None:
    fragment, found = replay([Clean()], 0, R)
    assert found == []
    assert (fragment.job.phase, fragment.job.released, fragment.job.held) == (Phase.INACTIVE, R, NO_RANKS)


# -- what the missing part cannot explain is still found --


@pytest.mark.parametrize("known", [True, False], ids=["R known", "R not known"])
@pytest.mark.parametrize("cut", [4, 5, 6])  # before alloc, before start, at finish
def test_the_unmatched_finish_is_found_without_the_log_s_beginning(cut: int, known: bool) -> None:
    ranks = ranks_of("unmatched-finish") if known else ALL_RANKS
    log = events_of("unmatched-finish", ranks)
    assert (log[5], log[6], log[9]) == (Start(), Finish(0), EpilogFinish("b"))
    _, found = replay(log, cut, ranks, running=True)
    assert found == [(9, Code.UnknownHolder), (10, Code.ReleasedWhileReferenced), (11, Code.CleanWhileHeld)]


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_cut_log_shows_no_more_than_the_whole(cut: int) -> None:
    ranks = ranks_of("unmatched-finish")
    _, found = replay(events_of("unmatched-finish", ranks), cut, ranks, running=True)
    expected = [(9, Code.UnknownHolder), (10, Code.ReleasedWhileReferenced), (11, Code.CleanWhileHeld)]
    assert found == (
        expected if cut <= 6 else [(10, Code.ReleasedWhileReferenced), (11, Code.CleanWhileHeld)] * (cut == 7)
    )


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_duplicate_holder_is_found_while_the_first_start_is_there(cut: int) -> None:
    ranks = ranks_of("dup-description")
    _, found = replay(events_of("dup-description", ranks), cut, ranks)
    assert found == ([(8, Code.DuplicateHolder)] if cut < 8 else [])


@pytest.mark.parametrize("cut", range(1, 10))
def test_a_malformed_event_is_found_wherever_the_log_begins(cut: int) -> None:
    ranks = ranks_of("H-free-context")
    _, found = replay(events_of("H-free-context", ranks), cut, ranks)
    assert found == [(9, Code.MalformedContext)]


def test_the_likeliest_state_of_a_fragment_is_running() -> None:
    job = Fragment.of(LastRank.DEFER, R).job
    assert job == Job(LastRank.DEFER, phase=Phase.RUN, exec=Exec.RUNNING, exec_ranks=R, allocation=R, held=R)


def test_a_fragment_knows_the_ranks_that_it_was_told() -> None:
    fragment = Fragment.of(LastRank.KEEP, R)
    with pytest.raises(ProtocolViolation) as error:
        fragment.apply(Release(IdSet("7")))
    assert error.value.code is Code.NotHeld


def test_a_violation_is_gone_on_from() -> None:
    """After a premature ``free`` the ranks are gone, in every state that is left."""
    log: list[Event] = [Start(), Finish(), EpilogStart("a"), Release(final=True), Free(), EpilogFinish("a"), Clean()]
    fragment, found = replay(log, 0, R)
    assert found == [(4, Code.ReleasedWhileReferenced)]
    assert (fragment.job.phase, fragment.job.released, fragment.job.held) == (Phase.INACTIVE, R, NO_RANKS)


def test_nothing_follows_clean() -> None:
    _, found = replay([Free(), Clean(), Clean(), Unknown("debug.x")], 0, R)
    assert found == [(2, Code.AfterInactive), (3, Code.AfterInactive)]


def test_what_says_nothing_leaves_all_states() -> None:
    """Of an event that can come anywhere nobody learns where the log begins; then CLEANUP is still possible."""
    quiet: list[Event] = [Unknown("debug.x"), JobException("note", 1), Urgency()]
    assert replay([*quiet, Free(), Clean()], 0, R)[1] == []
    assert replay([*quiet, EpilogFinish("a"), Free(), Clean()], 0, R)[1] == []


def test_a_malformed_first_event_leaves_it_possible_that_the_log_begins_in_cleanup() -> None:
    malformed = Malformed("memo", "it is odd")
    assert replay([malformed, Free(), Clean()], 0, R)[1] == [(0, Code.MalformedContext)]


def test_a_malformed_first_event_leaves_it_possible_that_the_log_begins_before_cleanup() -> None:
    malformed = Malformed("memo", "it is odd")
    assert replay([malformed, Start(), Finish(), Release(final=True), Free()], 0, R)[1] == [(0, Code.MalformedContext)]


def test_the_first_telling_event_settles_that_the_log_begins_before_cleanup() -> None:
    """A fragment that has shown a start has shown all of CLEANUP: an action that it did not start is not active."""
    for finish in (EpilogFinish("a"), PrologFinish("a")):
        assert replay([Start(), Finish(), finish], 0, R)[1] == [(2, Code.UnknownHolder)]
    log: list[Event] = [Finish(), Release(final=True), PartialFree(IdSet("0"))]
    assert replay(log, 0, R)[1] == []
    assert replay(log, 0, R, running=True)[1] == [(2, Code.WrongPhase)]


# -- actions whose start is not in the log --


def test_an_action_is_adopted_when_it_first_shows_itself() -> None:
    log: list[Event] = [
        Release(IdSet("0"), description="a"),
        PartialFree(IdSet("0")),
        Release(IdSet("1"), description="a"),
        EpilogFinish("a"),
        Free(),
        Clean(),
    ]
    assert replay(log, 0, R)[1] == []


def test_an_adopted_action_drops_a_rank_once() -> None:
    log: list[Event] = [Release(IdSet("0-1"), description="a"), Release(IdSet("1-2"), description="a")]
    assert replay(log, 0, R)[1] == [(1, Code.NotHeld)]


def test_an_adopted_action_drops_what_the_job_has() -> None:
    assert replay([Release(IdSet("3-4"), description="a")], 0, R)[1] == [(0, Code.UnknownHolder)]
    log: list[Event] = [EpilogFinish("x"), Release(IdSet("0"), description="b"), Release(IdSet("9"), description="b")]
    assert replay(log, 0, R)[1] == [(2, Code.NotHeld)]


def test_adopted_actions_drop_their_ranks_each_for_itself() -> None:
    both = [Release(IdSet("0"), description="a"), Release(IdSet("0"), description="b")]
    assert replay([*both, Release(IdSet("1"), description="b"), EpilogFinish("b")], 0, R)[1] == []
    assert replay([*both, EpilogFinish("a"), Release(IdSet("0"), description="b")], 0, R)[1] == [(3, Code.NotHeld)]


def test_an_adopted_action_that_has_finished_is_gone() -> None:
    """The next of its name starts anew, and holds what it says."""
    log: list[Event] = [
        Release(IdSet("0"), description="a"),
        EpilogFinish("a"),
        EpilogStart("a", IdSet("1")),
        Release(IdSet("2"), description="a"),
    ]
    assert replay(log, 0, R)[1] == [(3, Code.NotHeld)]


def test_an_adopted_action_starts_no_second_time() -> None:
    log: list[Event] = [Release(IdSet("0"), description="a"), EpilogStart("a")]
    assert replay(log, 0, R)[1] == [(1, Code.DuplicateHolder)]


def test_an_adopted_action_is_active_on_no_rank_for_certain() -> None:
    fragment, _ = replay([Release(IdSet("0"), description="a")], 0, R)
    assert fragment.job.actions == (Holder(HolderKind.EPILOG, "a", NO_RANKS),)
    assert fragment.job.phase is Phase.CLEANUP


def test_a_prolog_that_is_adopted_may_end_before_the_start() -> None:
    log: list[Event] = [PrologFinish("p"), Start(), Finish(), Release(final=True), Free(), Clean()]
    fragment, found = replay(log, 0, R)
    assert found == []
    assert fragment.job.phase is Phase.INACTIVE


def test_a_partial_free_at_the_beginning_is_explained_by_an_action_of_which_nothing_is_known() -> None:
    log: list[Event] = [PartialFree(IdSet("0")), PartialFree(IdSet("1")), EpilogFinish("a"), Free(), Clean()]
    assert replay(log, 0, R)[1] == []


def test_ranks_that_the_fragment_shows_to_be_gone_are_not_freed_again() -> None:
    assert replay([PartialFree(IdSet("0")), PartialFree(IdSet("0"))], 0, R)[1] != []
