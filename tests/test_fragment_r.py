"""R is cut down to some of its ranks as Flux cuts it, and as RFC 20 wants it."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_copy import HOUSEKEPT, blocks, frees, grant

from partialrelease import NO_RANKS, IdSet, ResourceSet, ResourceSetError
from partialrelease.cores import NO_CORES, CoreSet


def r(lite: list[dict[str, Any]], top: dict[str, Any] | None = None, **execution: Any) -> ResourceSet:
    document = {"version": 1, "execution": {"R_lite": lite, **execution}, **(top or {})}
    return ResourceSet.parse(json.dumps(document).encode())


def cut(resources: ResourceSet, ranks: str) -> Any:
    fragment = resources.fragment(IdSet(ranks))
    assert str(fragment.ranks) == ranks
    assert fragment.text is not None
    assert ResourceSet.parse(fragment.text, may_be_empty=True) == fragment
    return fragment.to_json()


def without_times(document: Any) -> Any:
    execution = {key: value for key, value in document["execution"].items() if key not in ("starttime", "expiration")}
    return {**document, "execution": execution}


# -- as Flux does --


@pytest.mark.parametrize("block", [b for b in blocks() if b.topic == "sched.free"], ids=lambda b: str(b.head[:23]))
def test_what_flux_freed_is_what_is_cut_from_the_jobs_r_but_for_times(block: Any) -> None:
    sent = block.payload["R"]
    allocated = grant(blocks(), block.payload["id"]).payload["R"]
    ranks = ResourceSet.parse(json.dumps(sent).encode()).ranks
    made = ResourceSet.parse(json.dumps(allocated).encode()).fragment(ranks).to_json()
    assert without_times(made) == without_times(sent)


def test_flux_frees_in_fragments_without_nslots_and_all_at_once_with() -> None:
    trace = blocks()
    assert ["nslots" in block.payload["R"]["execution"] for block in frees(trace, HOUSEKEPT)] == [False] * 4
    whole = [b for b in trace if b.topic == "sched.free" and b.payload["id"] != HOUSEKEPT]
    assert all("nslots" in block.payload["R"]["execution"] for block in whole)


# -- as RFC 20 says --

EVERYTHING: dict[str, Any] = {
    "version": 1,
    "execution": {
        "R_lite": [
            {"rank": "19-22,30", "children": {"core": "0-47", "gpu": "0-7"}},
            {"rank": "7", "children": {"core": "0"}, "extra": [1]},
        ],
        "nodelist": ["b,node[186-187]", "node186", "a", "b"],
        "nslots": 12,
        "properties": {"big": "19-22,30", "amd@gpu": "30", "small": "7"},
        "starttime": 100.5,
        "expiration": 200,
        "future": {"kept": "as it is"},
    },
    "scheduling": {"graph": {"nodes": []}, "writer": "fluxion"},
    "attributes": {"system": {}},
}


@pytest.mark.requirement("PR-33")
def test_each_key_of_r_is_cut_or_kept_or_dropped_as_it_must_be() -> None:
    resources = ResourceSet.parse(json.dumps(EVERYTHING).encode())
    assert cut(resources, "7,20-21") == {
        "version": 1,
        "execution": {
            "R_lite": [
                {"rank": "20-21", "children": {"core": "0-47", "gpu": "0-7"}},
                {"rank": "7", "children": {"core": "0"}, "extra": [1]},
            ],
            "nodelist": ["b,node[187,186]"],
            "properties": {"big": "20-21", "small": "7"},
            "starttime": 100.5,
            "expiration": 200,
            "future": {"kept": "as it is"},
        },
        "attributes": {"system": {}},
    }


def test_all_of_the_ranks_are_the_allocation_without_its_scheduling_key() -> None:
    resources = ResourceSet.parse(json.dumps(EVERYTHING).encode())
    whole = cut(resources, "7,19-22,30")
    assert whole["execution"].pop("nodelist") == ["b,node[186-187,186],a,b"]
    kept = {key: value for key, value in EVERYTHING.items() if key != "scheduling"}
    assert whole == {**kept, "execution": {k: v for k, v in EVERYTHING["execution"].items() if k != "nodelist"}}


@pytest.mark.requirement("PR-34")
def test_no_ranks_make_an_empty_r_such_as_a_final_free_may_carry() -> None:
    resources = r([{"rank": "0-3", "children": {"core": "0"}}], nodelist=["n[0-3]"], properties={"p": "0"}, nslots=4)
    assert cut(resources, "") == {"version": 1, "execution": {"R_lite": [], "nodelist": []}}
    with pytest.raises(ResourceSetError, match="no ranks"):
        ResourceSet.parse(json.dumps(cut(resources, "")).encode())


@pytest.mark.parametrize("nodelist", [{}, {"nodelist": None}, {"nodelist": []}])
def test_without_hosts_there_are_none_in_the_fragment(nodelist: dict[str, Any]) -> None:
    fragment = cut(r([{"rank": "0-3", "children": {"core": "0"}}], **nodelist), "1")
    assert {k: v for k, v in fragment["execution"].items() if k != "R_lite"} == nodelist


def test_an_r_that_was_not_read_is_cut_too() -> None:
    assert cut(ResourceSet(IdSet("3-5"), ("a,b,a",)), "3,5") == {
        "version": 1,
        "execution": {"R_lite": [{"rank": "3,5", "children": {"core": "0"}}], "nodelist": ["a,a"]},
    }


@pytest.mark.requirement("PR-33")
@given(
    st.lists(st.tuples(st.frozensets(st.integers(0, 9)), st.sampled_from(["0", "0-1", "2"])), min_size=1),
    st.frozensets(st.integers(0, 9)),
    st.data(),
)
def test_a_cut_and_the_rest_are_the_whole(
    entries: list[tuple[frozenset[int], str]], wanted: frozenset[int], data: st.DataObject
) -> None:
    ranks = IdSet(frozenset().union(*(some for some, _ in entries)) or {0})
    entries = entries if any(some for some, _ in entries) else [(frozenset({0}), "0")]
    names = [data.draw(st.sampled_from(["vm", "a1", "a2", "b"])) for _ in ranks]
    lite = [{"rank": str(IdSet(some)), "children": {"core": core}} for some, core in entries]
    resources = r(lite, nodelist=[",".join(names)])
    one, other = IdSet(wanted) & ranks, ranks - IdSet(wanted)
    a, b = resources.fragment(one), resources.fragment(other)
    assert a.cores() | b.cores() == resources.cores()
    assert a.cores().ranks == one
    by_rank = dict(zip(ranks, names, strict=True))
    for fragment in (a, b):
        hosts = fragment.hosts()
        each = [str(hosts.take([(k, k)])) for k in range(hosts.count)] if hosts else []
        assert each == [by_rank[rank] for rank in fragment.ranks]


def test_ranks_that_are_not_rs_are_refused() -> None:
    resources = r([{"rank": "0-3", "children": {"core": "0"}}])
    with pytest.raises(ResourceSetError, match=r"^no fragment of R \(ranks 0-3\) can have 4-5: not its ranks$"):
        resources.fragment(IdSet("2-5"))


@pytest.mark.parametrize(
    ("execution", "problem"),
    [
        ({"properties": {"p": "x"}}, r"not an idset.* - at `\$\.execution\.properties\['p'\]`"),
        ({"properties": ["p"]}, r"Expected `object`, got `array` - at `\$\.execution\.properties`"),
        ({"nodelist": ["a[0-1]"]}, r"2 hosts for 4 ranks - at `\$\.execution\.nodelist`"),
    ],
)
def test_an_r_that_is_not_good_is_not_cut(execution: dict[str, Any], problem: str) -> None:
    resources = r([{"rank": "0-3", "children": {"core": "0"}}], **execution)
    with pytest.raises(ResourceSetError, match=rf"^not an R \(RFC 20\): {problem}"):
        resources.fragment(IdSet("0"))


def test_eleven_thousand_ranks_are_cut_at_once() -> None:
    resources = r(
        [{"rank": "0-11135", "children": {"core": "0-95"}}],
        nodelist=["n[0-11135]"],
        properties={"batch": "0-9999"},
    )
    began = time.perf_counter()
    fragment = resources.fragment(IdSet(range(0, 11136, 2)))
    assert time.perf_counter() - began < 0.5
    assert fragment.hosts() is not None
    assert len(fragment.ranks) == 5568


# -- cores --


def test_cores_are_the_children_of_the_ranks() -> None:
    resources = ResourceSet.parse(json.dumps(EVERYTHING).encode())
    assert str(resources.cores()) == "rank[7,19-22,30]/core0 rank[19-22,30]/core[1-47] rank[19-22,30]/gpu[0-7]"
    assert resources.starttime() == 100.5
    assert resources.properties() == {"big": IdSet("19-22,30"), "amd@gpu": IdSet("30"), "small": IdSet("7")}


@pytest.mark.parametrize(
    "entry", [{"rank": "0-1"}, {"rank": "0-1", "children": {}}, {"rank": "0-1", "children": {"core": ""}}]
)
def test_a_rank_without_children_is_one_thing(entry: dict[str, Any]) -> None:
    assert r([entry]).cores() == CoreSet.of([("rank", IdSet("0"), IdSet("0-1"))])


def test_an_r_that_was_not_read_has_what_it_writes() -> None:
    resources = ResourceSet(IdSet("3-5"))
    assert str(resources.cores()) == "rank[3-5]/core0"
    assert (resources.starttime(), resources.properties()) == (None, {})
    assert ResourceSet(NO_RANKS, text=b'{"version": 1, "execution": {"R_lite": []}}').cores() == NO_CORES


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (
            {"rank": "0", "children": {"core": "1-0"}},
            r"not an idset.* - at `\$\.execution\.R_lite\[0\]\.children\.core`",
        ),
        (
            {"rank": "0", "children": {"core": 1}},
            r"Expected `str`, got `int` - at `\$\.execution\.R_lite\[0\]\.children",
        ),
        ({"rank": "0", "children": []}, r"Expected `object`, got `array`"),
    ],
)
def test_bad_children_are_refused_with_the_path(entry: dict[str, Any], problem: str) -> None:
    with pytest.raises(ResourceSetError, match=rf"^not an R \(RFC 20\): {problem}"):
        r([entry]).cores()


def test_recorded_rs_say_when_they_begin() -> None:
    path = Path(__file__).parent / "data" / "eventlogs" / "B-housekeeping.R"
    assert ResourceSet.parse(path.read_bytes()).starttime() == 1796134789.4136455
