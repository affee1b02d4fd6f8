"""The scheduler's side: what the recorded trace shows, and what each edited copy of it must be called."""

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from trace_copy import (
    DATA,
    HOUSEKEPT,
    LEAKED,
    RELOADED,
    Block,
    blocks,
    check,
    findings,
    frees,
    grant,
    hellos,
    lite,
)

from partialrelease import NO_RANKS, IdSet, LastRank, ResourceSet, read_log, read_r
from partialrelease.cores import NO_CORES, CoreSet
from partialrelease.sched_check import (
    SCHED_MEANING,
    AllocEnd,
    AllocGrant,
    AllocRequest,
    FreeRequest,
    HelloEnd,
    HelloJob,
    HelloRequest,
    JobLog,
    LogsBeside,
    SchedChecker,
    SchedCode,
    SchedDrop,
    SchedJob,
    SchedMessage,
)

LOGS = DATA / "eventlogs"


# -- the recorded trace --


def test_the_recorded_trace_breaks_no_rule_and_its_reloads_match() -> None:
    jobs, checker = check(blocks())
    assert findings(blocks()) == []
    assert (len(jobs), checker.messages, checker.hellos, checker.zone) == (12, 44, 2, 0.0)
    assert not any(job.away or job.missed for job in jobs.values())
    assert [job.job for job in jobs.values() if job.final is None] == [LEAKED]


@pytest.mark.requirement("PR-33", "PR-34")
def test_one_job_comes_back_in_four_disjoint_fragments_the_last_one_final() -> None:
    jobs, _ = check(blocks())
    job = jobs[HOUSEKEPT]
    assert [str(fragment.ranks) for fragment in job.fragments] == ["0", "1", "2", "3"]
    assert job.final == job.fragments[-1].line
    assert job.freed == job.allocated
    assert job.left == NO_CORES


def beside(jobs: dict[int, SchedJob], checker: SchedChecker, *logs: Path, journal: bytes = b"") -> list[str]:
    """Compare with these logs; returns what is said about those that cannot be."""
    logs_beside = LogsBeside(checker, jobs)
    said: list[str] = []
    for path in logs:
        r = path.with_suffix(".R")
        one = logs_beside.begin(path.stem)
        for entry in read_log(str(path), resources=read_r(str(r)) if r.exists() else None):
            one.step(entry)
        said += one.finish()
    if journal:
        one = logs_beside.begin("journal")
        for entry in read_log("journal", io.BytesIO(journal)):
            one.step(entry)
        said += one.finish()
    return said


def test_exactly_one_job_was_allocated_went_clean_and_was_never_freed() -> None:
    jobs, checker = check(blocks())
    said = beside(jobs, checker, *sorted(LOGS.glob("*.eventlog")))
    assert {job.job: job.log for job in jobs.values() if job.log} == {
        54408511488: "A-proposed",
        HOUSEKEPT: "B-housekeeping",
        163745628160: "C-perilog",
        LEAKED: "H-free-context",
        376396840960: "J-updates",
    }
    found = [(job.job, f.line, f.code, str(f.ranks)) for job in jobs.values() for f in job.findings]
    assert found == [(LEAKED, jobs[LEAKED].line, SchedCode.NeverFreed, "0-1")]
    # Those of another run; the one that by-passed the scheduler and the one that was never allocated need none.
    assert sorted(text.split(":")[0] for text in said) == [
        "cancel-running", "dup-description", "late-epilog", "one-epilog", "plain", "ranks-keys", "unmatched-finish",
    ]  # fmt: skip
    assert all("no job of the trace" in text for text in said)


# -- edited copies of it --


def edited(job: int, number: int, **changes: Any) -> list[Block]:
    """The trace, with changes to the payload of the job's n-th free."""
    trace = blocks()
    frees(trace, job)[number].payload.update(changes)
    return trace


@pytest.mark.requirement("PR-33")
def test_a_fragment_that_comes_twice_was_freed_twice() -> None:
    trace = blocks()
    first = frees(trace, HOUSEKEPT)[0]
    trace.insert(trace.index(first), first)
    assert findings(trace) == [(HOUSEKEPT, "FreedTwice", "0")]


@pytest.mark.requirement("PR-34")
def test_a_final_free_that_comes_twice_is_one_after_final() -> None:
    trace = blocks()
    last = frees(trace, HOUSEKEPT)[-1]
    trace.insert(trace.index(last), last)
    assert findings(trace) == [(HOUSEKEPT, "FreedAfterFinal", "3")]


def test_a_final_free_that_comes_again_much_later_is_one_after_final() -> None:
    trace = [block for block in blocks() if "hello" not in block.topic]
    again = frees(trace, HOUSEKEPT)[-1]
    one_life = (grant(trace, HOUSEKEPT), frees(trace, 54408511488)[0])
    more = [Block(old.head, {**old.payload, "id": number}) for number in range(200) for old in one_life]
    found = findings([*trace[: trace.index(grant(trace, LEAKED))], *more, again])
    assert found == [(HOUSEKEPT, "FreedAfterFinal", "3")]


def test_a_fragment_that_is_left_out_was_never_freed() -> None:
    trace = blocks()
    trace.remove(frees(trace, HOUSEKEPT)[1])
    assert findings(trace)[0] == (HOUSEKEPT, "NeverFreed", "1")


def test_other_ranks_were_freed_twice_or_never_allocated_and_theirs_never_freed() -> None:
    trace = blocks()
    lite(frees(trace, HOUSEKEPT)[1])["rank"] = "0"
    assert findings(trace)[:2] == [(HOUSEKEPT, "FreedTwice", "0"), (HOUSEKEPT, "NeverFreed", "1")]
    lite(frees(trace, HOUSEKEPT)[1])["rank"] = "1,7"
    assert findings(trace) == [(HOUSEKEPT, "FreedNotAllocated", "7")]


@pytest.mark.requirement("PR-34")
def test_a_job_without_a_final_free_has_no_final() -> None:
    trace = edited(HOUSEKEPT, 3, final=False)
    assert findings(trace) == [(HOUSEKEPT, "NoFinal", "3")]
    frees(trace, HOUSEKEPT)[3].payload.pop("final")
    assert findings(trace) == [(HOUSEKEPT, "NoFinal", "3")]


def test_after_final_is_after_final_although_ranks_are_left() -> None:
    assert findings(edited(HOUSEKEPT, 0, final=True))[:4] == [
        (HOUSEKEPT, "NeverFreed", "1-3"),
        (HOUSEKEPT, "FreedAfterFinal", "1"),
        (HOUSEKEPT, "FreedAfterFinal", "2"),
        (HOUSEKEPT, "FreedAfterFinal", "3"),
    ]


@pytest.mark.requirement("PR-33")
def test_half_of_a_ranks_cores_are_a_split() -> None:
    trace = blocks()
    first = frees(trace, HOUSEKEPT)[0]
    lite(first)["children"]["core"] = "0"
    rest = Block(first.head, json.loads(json.dumps(first.payload)))
    lite(rest)["children"]["core"] = "1"
    assert findings(trace)[:2] == [(HOUSEKEPT, "RankSplit", "0"), (HOUSEKEPT, "NeverFreed", "0")]
    trace.insert(trace.index(first) + 1, rest)
    assert findings(trace) == [(HOUSEKEPT, "RankSplit", "0")]


def test_cores_that_are_not_the_jobs_were_never_allocated() -> None:
    trace = blocks()
    lite(frees(trace, HOUSEKEPT)[0])["children"]["core"] = "0-2"
    assert findings(trace) == [(HOUSEKEPT, "FreedNotAllocated", "0")]


def test_jobs_may_share_a_node_and_not_a_core() -> None:
    trace = blocks()
    late = grant(trace, 376396840960)  # has rank 2; the leaked job has ranks 0-1
    summary = late.payload["R"]["execution"]["R_lite"]
    summary[0] = {"rank": "1", "children": {"core": "1-3"}}
    freed = frees(trace, 376396840960)[0].payload["R"]["execution"]["R_lite"]
    freed[0] = {"rank": "1", "children": {"core": "1-3"}}
    assert findings(trace) == [(376396840960, "DoubleBooked", "1")]
    for entry in (summary[0], freed[0]):
        entry["children"]["core"] = "2-3"
    assert findings(trace) == []
    for entry in (summary[0], freed[0]):
        entry["children"] = {"core": "2-3", "gpu": "0"}
    lite(grant(trace, LEAKED))["children"]["gpu"] = "0-1"
    assert findings(trace) == [(376396840960, "DoubleBooked", "1")]


def test_the_job_that_has_the_core_too_is_named() -> None:
    trace = blocks()
    lite(grant(trace, 376396840960))["rank"] = "1-2"
    jobs, _ = check(trace)
    (finding,) = (f for f in jobs[376396840960].findings if f.code is SchedCode.DoubleBooked)
    assert finding.message == f"rank1/core[0-1] is also job {LEAKED}'s (line {jobs[LEAKED].line})"


# -- hellos --


@pytest.mark.requirement("PR-38")
def test_a_hello_that_says_free_what_comes_back_later_says_too_much() -> None:
    trace = blocks()
    hellos(trace, RELOADED)[1].payload["free"] = "0-1"
    assert findings(trace) == [(RELOADED, "HelloFreesTooMuch", "0-1")]
    jobs, _ = check(trace)
    (finding,) = jobs[RELOADED].findings
    assert "sched-hello" in finding.event
    assert finding.line < jobs[RELOADED].fragments[0].line


def test_a_hello_that_says_free_and_the_next_one_not_said_too_much() -> None:
    trace = blocks()
    hellos(trace, RELOADED)[0].payload["free"] = "0-1"
    assert findings(trace) == [(RELOADED, "HelloFreesTooMuch", "0-1")]
    jobs, _ = check(trace)
    assert jobs[RELOADED].findings[0].line < jobs[RELOADED].fragments[0].line


def test_a_hello_that_frees_ranks_that_were_never_the_jobs_says_too_much() -> None:
    trace = blocks()
    hellos(trace, RELOADED)[1].payload["free"] = "7"
    assert findings(trace) == [(RELOADED, "HelloFreesTooMuch", "7")]
    assert check(trace)[0][RELOADED].away == NO_RANKS


@pytest.mark.requirement("PR-38")
def test_a_hello_that_does_not_name_what_was_freed_says_too_little() -> None:
    trace = blocks()
    first_hello = next(block for block in trace if "hello" in block.topic)
    early = Block(frees(trace, RELOADED)[0].head, json.loads(json.dumps(frees(trace, RELOADED)[0].payload)))
    lite(early)["rank"] = "0"
    early.payload["final"] = False
    trace.insert(trace.index(first_hello), early)
    lite(frees(trace, RELOADED)[1])["rank"] = "1-3"
    assert findings(trace)[:2] == [(RELOADED, "HelloFreesTooLittle", "0"), (RELOADED, "NeverFreed", "0")]
    for said in hellos(trace, RELOADED):
        said.payload["free"] = "0"
    assert findings(trace) == []
    for request in (block for block in trace if "hello" in block.topic and block.direction == ">"):
        request.payload = None
        request.head = request.head.replace("[21]", "[0]")
    assert findings(trace) == [(RELOADED, "HelloWithoutPartialOk", "0")] * 2


@pytest.mark.requirement("PR-37")
def test_a_hello_that_leaves_a_job_out_misses_it() -> None:
    trace = blocks()
    trace.remove(hellos(trace, RELOADED)[1])
    assert findings(trace) == [(RELOADED, "HelloMissesJob", "0-3")]
    trace = blocks()
    trace.remove(hellos(trace, RELOADED)[0])
    assert findings(trace) == [(RELOADED, "HelloMissesJob", "0-3")]


def test_a_job_that_is_gone_after_a_hello_and_stays_so_ended_while_no_scheduler_was_loaded() -> None:
    trace = blocks()
    trace.remove(hellos(trace, RELOADED)[1])
    trace.remove(frees(trace, RELOADED)[0])
    assert findings(trace) == []
    assert check(trace)[0][RELOADED].missed


def test_a_hello_with_a_job_that_has_nothing_says_so() -> None:
    trace = blocks()
    said = hellos(trace, RELOADED)[0]
    place = trace.index(said)
    trace.insert(place, Block(said.head, {**said.payload, "id": HOUSEKEPT}))
    assert findings(trace) == [
        (RELOADED, "DoubleBooked", "0-3"),
        (HOUSEKEPT, "HelloNotAllocated", "0-3"),
        (HOUSEKEPT, "HelloFreesTooLittle", "0-3"),
    ]


@pytest.mark.requirement("PR-37")
def test_two_responses_for_one_job_are_one_too_many() -> None:
    trace = blocks()
    said = hellos(trace, RELOADED)[0]
    trace.insert(trace.index(said), said)
    assert findings(trace) == [(RELOADED, "HelloTwice", "")]


# -- a trace that begins in the middle --


@pytest.mark.parametrize("number", range(len(blocks())))
def test_a_trace_may_begin_anywhere(number: int) -> None:
    assert findings(blocks()[number:]) == []


@pytest.mark.parametrize("number", range(1, len(blocks())))
def test_a_trace_may_end_anywhere(number: int) -> None:
    assert findings(blocks()[:number]) == []


def after_the_grant(job: int) -> list[Block]:
    trace = blocks()
    return trace[trace.index(grant(trace, job)) + 1 :]


def test_of_a_job_from_before_the_trace_what_can_be_checked_is() -> None:
    trace = after_the_grant(HOUSEKEPT)
    first, second, *_ = frees(trace, HOUSEKEPT)
    lite(second)["rank"] = "0"
    assert findings(trace) == [(HOUSEKEPT, "FreedTwice", "0")]
    lite(second)["children"]["core"] = "2"
    assert findings(trace) == [(HOUSEKEPT, "RankSplit", "0")]
    lite(second)["rank"] = "1"
    trace.insert(trace.index(first), Block(first.head, {**first.payload, "final": True}))
    assert [code for _, code, _ in findings(trace)] == ["FreedAfterFinal"] * 4
    jobs, _ = check(trace)
    assert jobs[HOUSEKEPT].allocated is None


# -- the rest, message by message --


def cores(text: str, core: str = "0-1") -> CoreSet:
    return CoreSet.of([("core", IdSet(core), IdSet(text))])


Body = AllocRequest | AllocGrant | AllocEnd | FreeRequest | HelloRequest | HelloJob | HelloEnd | SchedDrop


def run(*bodies: Body, **settings: Any) -> tuple[dict[int, SchedJob], SchedChecker]:
    checker = SchedChecker(**settings)
    jobs: list[SchedJob] = []
    for line, body in enumerate(bodies, 1):
        jobs += checker.step(SchedMessage(line, 1e9 + line, body))
    jobs += checker.finish()
    return {job.job: job for job in jobs}, checker


def codes(*bodies: Body, **settings: Any) -> list[tuple[int, str]]:
    return [(job.job, str(f.code)) for job in run(*bodies, **settings)[0].values() for f in job.findings]


def test_a_free_of_a_job_that_waits_for_its_allocation_is_of_nothing() -> None:
    assert codes(AllocRequest(1), FreeRequest(1, cores("0"), final=True)) == [(1, "FreedNotAllocated")]
    assert codes(AllocRequest(1), AllocEnd(1), FreeRequest(1, cores("0"), final=True)) == []


def test_after_a_hello_all_jobs_are_known() -> None:
    hello = (HelloRequest(partial_ok=True), HelloJob(1), HelloEnd())
    assert codes(*hello, FreeRequest(1, cores("0")), FreeRequest(1, cores("1"), final=True)) == []
    assert codes(*hello, FreeRequest(2, cores("0"), final=True)) == [(2, "FreedNotAllocated")]
    assert codes(*hello, HelloRequest(), HelloJob(1), HelloJob(2), HelloEnd()) == [(2, "HelloNotAllocated")]
    assert codes(*hello[:2], HelloEnd(complete=False), FreeRequest(2, cores("0"), final=True)) == []
    assert codes(*hello[1:], FreeRequest(2, cores("0"), final=True)) == []
    assert codes(HelloEnd(), FreeRequest(2, cores("0"), final=True)) == []


def test_a_second_allocation_is_one_too_many() -> None:
    grants = AllocGrant(1, cores("0")), AllocGrant(1, cores("1"))
    assert codes(*grants) == [(1, "AllocatedTwice")]
    jobs, _ = run(*grants)
    assert jobs[1].left == cores("0-1")
    free = FreeRequest(1, cores("0"), final=True)
    assert codes(grants[0], free, AllocGrant(1, None)) == [(1, "AllocatedTwice")]


def test_an_allocation_whose_r_is_not_said_is_checked_as_one_from_before_the_trace() -> None:
    assert codes(AllocGrant(1, None), FreeRequest(1, cores("0")), FreeRequest(1, cores("0"), final=True)) == [
        (1, "FreedTwice")
    ]


@pytest.mark.requirement("PR-34", "PR-35")
def test_a_final_free_may_be_empty_with_defer() -> None:
    grant, free = AllocGrant(1, cores("0")), FreeRequest(1, cores("0"))
    assert codes(grant, free) == [(1, "NoFinal")]
    assert codes(grant, free, last_rank=LastRank.DEFER) == []
    assert codes(grant, free, FreeRequest(1, NO_CORES, final=True), last_rank=LastRank.DEFER) == []


def test_two_jobs_that_have_a_core_are_said_to_once_and_a_third_again() -> None:
    one, two, three = (AllocGrant(number, cores("0")) for number in (1, 2, 3))
    assert codes(one, two) == [(2, "DoubleBooked")]
    hello = (HelloRequest(), HelloJob(1), HelloJob(2), HelloEnd())
    assert codes(one, two, *hello) == [(2, "DoubleBooked")]
    # When one of them has freed it, the other still has it.
    assert codes(one, two, FreeRequest(1, cores("0"), final=True), three) == [(2, "DoubleBooked"), (3, "DoubleBooked")]
    assert codes(one, FreeRequest(1, cores("0"), final=True), two) == []


@pytest.mark.parametrize("gone", [(SchedDrop(2),), (HelloRequest(), HelloJob(3), HelloEnd())])
def test_who_had_a_core_too_and_is_gone_has_it_no_more(gone: tuple[Body, ...]) -> None:
    grants = AllocGrant(1, cores("0")), AllocGrant(2, cores("0")), AllocGrant(3, cores("5"))
    one = () if len(gone) > 1 else (FreeRequest(1, cores("0"), final=True),)
    found = codes(
        *grants, *gone, *one, FreeRequest(3, cores("5")), AllocGrant(4, cores("0,5")), last_rank=LastRank.DEFER
    )
    assert found == [(2, "DoubleBooked")]


def test_what_was_freed_twice_is_still_the_others() -> None:
    part = FreeRequest(1, cores("0"))
    found = codes(AllocGrant(1, cores("0-1")), part, AllocGrant(2, cores("0")), part, AllocGrant(3, cores("0")))
    assert found == [(1, "FreedTwice"), (3, "DoubleBooked")]


def test_a_hello_that_forgets_what_was_freed_doubles_it() -> None:
    found = codes(
        AllocGrant(1, cores("0-1")),
        FreeRequest(1, cores("0")),
        AllocGrant(2, cores("0")),
        HelloRequest(partial_ok=True),
        HelloJob(1),
        HelloJob(2),
        HelloEnd(),
    )
    assert found == [(1, "HelloFreesTooLittle"), (2, "DoubleBooked")]


def test_what_a_job_lost_in_a_hello_can_be_allocated() -> None:
    jobs, _ = run(
        AllocGrant(1, cores("0-1")),
        HelloRequest(partial_ok=True),
        HelloJob(1, IdSet("0")),
        HelloEnd(),
        AllocGrant(2, cores("0")),
        FreeRequest(1, cores("1"), final=True),
    )
    assert not any(job.findings for job in jobs.values())
    assert (jobs[1].away, jobs[1].left) == (IdSet("0"), NO_CORES)


def test_a_job_that_a_hello_left_out_and_a_later_free_has_was_missed_once() -> None:
    found = codes(
        AllocGrant(1, cores("0-1")),
        HelloRequest(),
        HelloEnd(),
        FreeRequest(1, cores("0")),
        FreeRequest(1, cores("1"), final=True),
    )
    assert found == [(1, "HelloMissesJob")]


HELLO = HelloRequest(partial_ok=True)


def test_after_a_hello_what_counts_is_what_it_said() -> None:
    free = FreeRequest(1, cores("0"))
    for before in ((), (AllocGrant(1, cores("0-1")),)):
        assert codes(*before, free, HELLO, HelloJob(1), HelloEnd(), free) == [(1, "HelloFreesTooLittle")]
        assert codes(*before, free, HELLO, HelloJob(1, IdSet("0")), HelloEnd(), free) == [(1, "FreedTwice")]


def test_two_hellos_may_say_that_ranks_are_free_which_were_not_seen_to_be_freed() -> None:
    hello = HELLO, HelloJob(1, IdSet("0")), HelloEnd()
    assert codes(AllocGrant(1, cores("0-1")), *hello, *hello, FreeRequest(1, cores("1"), final=True)) == []


def test_what_a_hello_said_wrongly_is_said() -> None:
    for jobs, said in (((), "leaves the job out"), ((HelloJob(1, IdSet("0")),), "says that it has rank 0 no more")):
        free = FreeRequest(1, cores("0-1"), final=True)
        found, _ = run(AllocGrant(1, cores("0-1")), HELLO, *jobs, HelloEnd(), free)
        (finding,) = found[1].findings
        line = 4 + len(jobs)
        assert finding.message == f"the hello {said}, but ranks 0-1 freed at line {line}"


def test_a_job_that_was_missed_and_is_allocated_again_is_no_longer_missed() -> None:
    again = AllocGrant(1, cores("1")), FreeRequest(1, cores("0-1"), final=True)
    assert codes(AllocGrant(1, cores("0")), HELLO, HelloEnd(), *again) == [(1, "AllocatedTwice")]


def test_a_job_from_before_the_trace_can_be_missed_too() -> None:
    found = codes(FreeRequest(1, cores("0")), HELLO, HelloEnd(), FreeRequest(1, cores("1"), final=True))
    assert found == [(1, "HelloMissesJob")]


def test_a_job_that_the_scheduler_could_not_take_over_needs_no_free() -> None:
    jobs, checker = run(
        AllocGrant(1, cores("0")),
        HelloRequest(),
        HelloJob(1),
        SchedDrop(1),
        SchedDrop(9),
        HelloEnd(),
        AllocGrant(2, cores("0")),
    )
    assert not any(job.findings for job in jobs.values())
    jobs[1].compare(journal_log(1, "submit", "alloc", "finish", "free", "clean"), checker.zone, checker.end)
    assert jobs[1].findings == []


def test_ended_jobs_are_told_while_the_trace_goes_on_and_only_so_many_are_kept() -> None:
    checker = SchedChecker()
    told: list[SchedJob] = []
    for number in range(1000):
        for body in (AllocRequest(number), AllocGrant(number, cores("0")), FreeRequest(number, cores("0"), final=True)):
            told += checker.step(SchedMessage(1, 1e9, body))
    assert [job.job for job in told] == list(range(900))
    assert list(checker.step(SchedMessage(1, 1e9, AllocGrant(7, cores("0"))))) == []
    (again, *rest) = sorted(checker.finish(), key=lambda job: job.job)
    assert (again.job, [f.code for f in again.findings]) == (7, [SchedCode.AllocatedTwice])
    assert len(rest) == 100


# -- beside logs --


def journal(job: int, *events: str | tuple[float, str, dict[str, Any]], r: str = "0-1") -> bytes:
    """A journal of one job: an event a second from 1e9 on, or at the time that is said."""
    lines = []
    for number, event in enumerate(events):
        time, name, context = event if isinstance(event, tuple) else (1e9 + number, event, {})
        defaults: dict[str, dict[str, Any]] = {
            "submit": {"userid": 0, "urgency": 16, "flags": 0, "version": 1},
            "finish": {"status": 0},
            "release": {"ranks": "all", "final": True},
        }
        line: dict[str, Any] = {
            "id": job,
            "timestamp": time,
            "name": name,
            "context": {**defaults.get(name, {}), **context},
        }
        if name == "alloc":
            line["R"] = {"version": 1, "execution": {"R_lite": [{"rank": r, "children": {"core": "0-1"}}]}}
        lines.append(json.dumps(line) + "\n")
    return "".join(lines).encode()


def journal_log(job: int, *events: str | tuple[float, str, dict[str, Any]]) -> JobLog:
    log = JobLog("journal")
    for entry in read_log("journal", io.BytesIO(journal(job, *events))):
        log.step(entry)
    return log


LIFE = ("submit", "alloc", "start", "finish")  # at 0, 1, 2 and 3 s
EPILOG: dict[str, Any] = {"description": "dws"}


def after_life(*events: tuple[float, str, dict[str, Any]]) -> list[Any]:
    return [*LIFE, *((1e9 + time, name, context) for time, name, context in events)]


def freed_at(*frees: tuple[float, str], events: Iterable[Any], end: float = 100.0, zone: float = 0.0) -> list[Any]:
    """The findings on a job of ranks 0-1 whose ranks are freed at these times, the last one final."""
    checker = SchedChecker()
    jobs: list[SchedJob] = []
    bodies: list[tuple[float, Body]] = [(1.0, AllocGrant(1, cores("0-1"), starttime=1e9 + 1))]
    for number, (time, ranks) in enumerate(frees, 1):
        bodies.append((time, FreeRequest(1, cores(ranks), final=number == len(frees))))
    bodies.append((end, AllocRequest(2)))
    for line, (time, body) in enumerate(bodies, 1):
        jobs += checker.step(SchedMessage(line, 1e9 + time + zone, body))
    jobs += checker.finish()
    said = beside({job.job: job for job in jobs}, checker, journal=journal(1, *events))
    assert said == []
    return [(str(f.code), str(f.ranks), [str(holder) for holder in f.holders]) for f in jobs[0].findings]


EPILOG_TO_8 = after_life(
    (3.5, "release", {}),
    (4, "epilog-start", EPILOG),
    (6, "release", {"ranks": "1", "final": False, "description": "dws"}),
    (6.1, "partial-free", {"ranks": "1"}),
    (8, "epilog-finish", {**EPILOG, "status": 0}),
    (8, "free", {}),
    (8, "clean", {}),
)


@pytest.mark.requirement("PR-33")
@pytest.mark.parametrize(
    ("frees", "found"),
    [
        ([(6.2, "1"), (8.5, "0")], []),
        ([(8.5, "0-1")], []),
        ([(2.0, "0-1")], [("ReleasedWhileReferenced", "0-1", ["the exec system"])]),
        ([(3.7, "1"), (8.5, "0")], [("FreedWhileHeld", "1", [])]),
        ([(5.0, "1"), (8.5, "0")], [("ReleasedWhileReferenced", "1", ["epilog 'dws'"])]),
        ([(7.0, "0-1")], [("ReleasedWhileReferenced", "0", ["epilog 'dws'"])]),
        ([(6.05, "1"), (8.5, "0")], [("FreedWhileHeld", "1", [])]),
        ([(7.9995, "0-1")], []),  # cut to milliseconds: it may have been later
        ([(0.0, "0-1")], []),  # before the log begins: nothing is said
    ],
)
def test_what_is_freed_must_have_been_handed_over_and_unreferenced(
    frees: list[tuple[float, str]], found: list[Any]
) -> None:
    assert freed_at(*frees, events=EPILOG_TO_8) == found


@pytest.mark.parametrize("zone", [-8 * 3600.0, 5.75 * 3600, 14 * 3600])
def test_a_trace_in_local_time_is_compared_all_the_same(zone: float) -> None:
    assert freed_at((6.2, "1"), (8.5, "0"), events=EPILOG_TO_8, zone=zone) == []
    assert freed_at((5.0, "1"), (8.5, "0"), events=EPILOG_TO_8, zone=zone) == [
        ("ReleasedWhileReferenced", "1", ["epilog 'dws'"])
    ]


def test_a_starttime_that_is_not_about_the_time_of_the_grant_says_nothing_of_the_clock() -> None:
    for starttime in (1e9 + 400, 1e9 + 86400 * 2):
        assert run(AllocGrant(1, cores("0"), starttime=starttime))[1].zone == 0.0
    _, checker = run(AllocGrant(1, cores("0"), starttime=1e9 - 3600), AllocGrant(2, cores("1"), starttime=1e9 - 7200))
    assert checker.zone == 3600.0


def test_what_a_free_event_handed_over_wrongly_is_still_referenced() -> None:
    wrong = after_life(
        (3.5, "release", {}),
        (4, "epilog-start", EPILOG),
        (5, "free", {}),
        (6, "epilog-start", {"description": "late"}),  # there is nothing left for it
        (8, "epilog-finish", {**EPILOG, "status": 0}),
        (20, "epilog-finish", {"description": "late", "status": 0}),
        (20, "clean", {}),
    )
    assert freed_at((5.5, "0-1"), events=wrong) == [("ReleasedWhileReferenced", "0-1", ["epilog 'dws'"])]
    assert freed_at((9.0, "0-1"), events=wrong) == []


@pytest.mark.parametrize("said", [{}, {"ranks": "all"}])
def test_an_epilog_that_references_all_has_what_is_held_then(said: dict[str, str]) -> None:
    late = after_life(
        (3.5, "release", {}),
        (4, "epilog-start", {**EPILOG, "ranks": "0"}),
        (4, "partial-free", {"ranks": "1"}),
        (5, "epilog-start", {"description": "late", **said}),
        (8, "epilog-finish", {**EPILOG, "status": 0}),
        (9, "epilog-finish", {"description": "late", "status": 0}),
        (9, "free", {}),
    )
    assert freed_at((6.0, "1"), (9.5, "0"), events=late) == []
    assert freed_at((6.0, "1"), (8.5, "0"), events=late) == [("ReleasedWhileReferenced", "0", ["epilog 'late'"])]


def test_an_epilog_may_reference_some_ranks() -> None:
    some = after_life(
        (3.5, "release", {}),
        (4, "epilog-start", {**EPILOG, "ranks": "0"}),
        (4, "epilog-start", {}),  # says nothing that could be understood
        (4, "partial-free", {"ranks": "1"}),
        (8, "epilog-finish", {**EPILOG, "status": 0}),
        (8, "free", {}),
    )
    assert freed_at((5.0, "1"), (9.0, "0"), events=some) == []
    assert freed_at((5.0, "0-1"), events=some) == [("ReleasedWhileReferenced", "0", ["epilog 'dws'"])]


def test_a_log_that_was_taken_before_says_nothing_about_what_came_later() -> None:
    assert freed_at((5.0, "0-1"), events=LIFE) == []
    assert freed_at((2.5, "0-1"), events=LIFE) == [("ReleasedWhileReferenced", "0-1", ["the exec system"])]


ENDED = after_life((4, "release", {}), (4, "free", {}), (5, "clean", {}))


def never_freed(*bodies: Body, events: Iterable[Any] = ENDED, end: float = 100.0, **settings: Any) -> list[str]:
    checker = SchedChecker(**settings)
    jobs: list[SchedJob] = []
    for line, body in enumerate((*bodies, AllocRequest(2)), 1):
        time = 1e9 + (end if isinstance(body, AllocRequest) else 4.5)
        jobs += checker.step(SchedMessage(line, time, body))
    jobs += checker.finish()
    beside({job.job: job for job in jobs}, checker, journal=journal(1, *events))
    return [str(f.code) for job in jobs if job.job == 1 for f in job.findings]


def test_a_job_that_went_clean_must_have_come_back() -> None:
    grant = AllocGrant(1, cores("0-1"))
    assert never_freed(grant) == ["NeverFreed"]
    assert never_freed(grant, FreeRequest(1, cores("0"))) == ["NeverFreed"]
    assert never_freed(grant, end=4.9) == []  # not clean yet
    assert never_freed(grant, events=ENDED[:-1]) == []
    assert never_freed(grant, FreeRequest(1, cores("0-1"))) == ["NoFinal"]
    assert never_freed(grant, FreeRequest(1, cores("0-1")), last_rank=LastRank.DEFER) == ["NoFinal"]
    assert never_freed(grant, FreeRequest(1, cores("0-1")), events=ENDED[:-1], last_rank=LastRank.DEFER) == []
    assert never_freed(AllocGrant(1, None)) == []
    assert never_freed(grant, HelloRequest(), HelloEnd()) == []
    lost = [*LIFE, (1e9 + 4, "release", {}), (1e9 + 4, "exception", {"type": "scheduler-restart", "severity": 0})]
    assert never_freed(grant, events=[*lost, (1e9 + 5, "clean", {})]) == []


def test_a_hello_is_compared_with_what_the_job_still_held() -> None:
    grant = AllocGrant(1, cores("0-1"))

    def hello(*jobs: HelloJob) -> tuple[Body, ...]:
        return grant, HelloRequest(partial_ok=True), *jobs, HelloEnd()

    held: list[Any] = [*LIFE, (1e9 + 10, "release", {}), (1e9 + 10, "free", {}), (1e9 + 11, "clean", {})]
    assert never_freed(*hello(HelloJob(1, IdSet("0"))), events=held) == ["HelloFreesTooMuch", "NeverFreed"]
    assert never_freed(*hello(), events=held) == ["HelloMissesJob", "NeverFreed"]
    assert never_freed(*hello(), events=held[:4]) == []  # the log was taken before
    assert never_freed(*hello(), events=ENDED) == []
    assert never_freed(*hello(HelloJob(1, IdSet("0"))), FreeRequest(1, cores("1"), final=True)) == []


def test_logs_without_an_id_are_found_by_submit_or_starttime_and_ranks() -> None:
    """Several jobs may be submitted at one time."""
    jobs, checker = run(
        AllocRequest(1, 1e9),
        AllocRequest(2, 1e9),
        AllocRequest(3, 1e9),
        AllocRequest(4, 1e9 + 7),
        AllocGrant(1, cores("0-1")),
        AllocGrant(2, cores("2")),
        AllocGrant(3, cores("3")),
        AllocGrant(4, cores("4"), starttime=77.5),
    )
    logs = LogsBeside(checker, jobs)
    assert [job.job for job in logs.find(journal_log(9, *LIFE))] == [1]
    assert [job.job for job in logs.find(journal_log(9, "submit"))] == [1, 2, 3]
    log = journal_log(9, (1e9 + 3, "submit", {}))
    assert logs.find(log) == []
    known_by_hello, checker = run(HELLO, HelloJob(1, t_submit=1e9), HelloEnd())
    assert [job.job for job in LogsBeside(checker, known_by_hello).find(journal_log(9, *LIFE))] == [1]
    for text, found in (("77.5", [4]), ('"soon"', [])):
        execution = b'{"R_lite": [{"rank": "4", "children": {"core": "0-1"}}], "starttime": %s}' % text.encode()
        path = b'{"version": 1, "execution": %s}' % execution
        log.resources = ResourceSet.parse(path)
        assert [job.job for job in logs.find(log)] == found


def test_a_log_of_offsets_is_not_compared_by_time(tmp_path: Path) -> None:
    log = tmp_path / "H.eventlog"
    lines = []
    for line in (LOGS / "H-free-context.eventlog").read_text().splitlines():
        entry = json.loads(line)
        entry["timestamp"] -= 1796134803.0
        lines.append(json.dumps(entry))
    log.write_text("\n".join(lines) + "\n")
    (tmp_path / "H.R").write_bytes((LOGS / "H-free-context.R").read_bytes())
    jobs, checker = check(blocks())
    assert beside(jobs, checker, log) == []
    assert jobs[LEAKED].log == "H"
    assert [f.code for f in jobs[LEAKED].findings] == [SchedCode.NeverFreed]


def test_a_trace_with_human_times_is_not_compared_by_time() -> None:
    trace = blocks()
    for block in trace:
        block.head = f"[Dec01 14:19]  {block.head.partition(' ')[2]}"
    jobs, checker = check(trace)
    assert beside(jobs, checker, LOGS / "H-free-context.eventlog", LOGS / "B-housekeeping.eventlog") == []
    assert [(job.job, f.code) for job in jobs.values() for f in job.findings] == [(LEAKED, SchedCode.NeverFreed)]


def test_what_cannot_be_compared_is_said() -> None:
    jobs, checker = run(AllocGrant(1, cores("0-1")), AllocGrant(2, cores("2")))
    logs = (
        journal(1, *LIFE[1:])
        + journal(3, *LIFE)
        + journal(4, *LIFE)
        + journal(5, "submit", (1e9, "alloc", {"bypass": True}))
    )
    assert beside(jobs, checker, journal=logs) == [
        "journal: 1 of its jobs began before it: not compared with the trace",
        "journal: 2 of its jobs are not in the trace: not compared with it",
    ]


def test_a_log_is_found_for_a_job_whose_grant_is_not_in_the_trace() -> None:
    jobs, checker = check(after_the_grant(54408511488))
    assert beside(jobs, checker, LOGS / "A-proposed.eventlog") == []
    assert jobs[54408511488].log == "A-proposed"


def test_a_second_copy_of_a_log_says_nothing_more() -> None:
    jobs, checker = check(blocks())
    leaked = LOGS / "H-free-context.eventlog"
    assert beside(jobs, checker, leaked, leaked) == []
    assert len(jobs[LEAKED].findings) == 1


def test_a_log_that_several_jobs_fit_is_not_compared(tmp_path: Path) -> None:
    requests: list[Body] = [AllocRequest(1, 1e9), AllocRequest(2, 1e9)]
    jobs, checker = run(*requests, AllocGrant(1, cores("0-1")), AllocGrant(2, cores("0-1", "5")))
    log = tmp_path / "one.eventlog"
    log.write_bytes(journal(7, *LIFE).replace(b'"id": 7, ', b""))
    (tmp_path / "one.R").write_text(
        '{"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-1"}}]}}'
    )
    (said,) = beside(jobs, checker, log)
    assert said.startswith("one: 2 jobs of the trace found for it")


def test_each_code_has_a_meaning() -> None:
    assert list(SCHED_MEANING) == list(SchedCode)
