"""R (RFC 20) is read strictly where it says which ranks and which hosts, and written back as it was."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partialrelease import NO_RANKS, IdSet, ResourceSet, ResourceSetError, ranks_of_summary

RECORDED = sorted((Path(__file__).parent / "data" / "eventlogs").glob("*.R"))


def r(*ranks: str, nodelist: Any = None, **execution: Any) -> bytes:
    execution["R_lite"] = [{"rank": idset, "children": {"core": "0"}} for idset in ranks]
    if nodelist is not None:
        execution["nodelist"] = nodelist
    return json.dumps({"version": 1, "execution": execution}).encode()


# -- reading and writing --


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_r_is_read_and_written_as_it_was(path: Path) -> None:
    text = path.read_bytes()
    recorded = json.loads(text)
    resources = ResourceSet.parse(text)
    (entry,) = recorded["execution"]["R_lite"]
    assert str(resources.ranks) == entry["rank"]
    assert resources.nodelist == tuple(recorded["execution"]["nodelist"])
    assert resources.text == text
    assert json.dumps(resources.to_json()) == json.dumps(recorded)  # the order of the keys too
    assert resources.ranks_of("vm") == resources.ranks
    hosts = resources.hosts_of(resources.ranks)
    assert str(hosts) == recorded["execution"]["nodelist"][0]
    assert str(resources.hosts_of(IdSet([resources.ranks.min()]))) == "vm"


def test_recorded_rs_are_there() -> None:
    assert len(RECORDED) == 13


def test_ranks_are_the_union_of_the_entries() -> None:
    resources = ResourceSet.parse(r("7", "0-3", "[2-5,9]"))
    assert str(resources.ranks) == "0-5,7,9"
    assert resources.nodelist is None


def test_raw_json_is_read_too() -> None:
    text = r("0-3", nodelist=["a[0-3]"])
    resources = ResourceSet.parse(msgspec.Raw(text))
    assert resources == ResourceSet.parse(text)
    assert resources.text == text


@given(st.frozensets(st.integers(0, 20), min_size=1), st.sampled_from([None, (), ("n[0-3]", "m")]))
def test_an_r_that_was_not_read_is_written_as_the_least_and_reads_back(
    ranks: frozenset[int], nodelist: tuple[str, ...] | None
) -> None:
    resources = ResourceSet(IdSet(ranks), nodelist)
    written = resources.to_json()
    assert written["version"] == 1
    assert ("nodelist" in written["execution"]) is (nodelist is not None)
    assert ResourceSet.parse(json.dumps(written).encode()) == resources


def test_equality_is_of_ranks_and_hosts_not_of_the_text() -> None:
    assert ResourceSet.parse(r("0-3")) == ResourceSet.parse(r("0-1", "2-3")) == ResourceSet(IdSet("0-3"))
    assert ResourceSet(IdSet("0-3")) != ResourceSet(IdSet("0-2"))
    assert ResourceSet(IdSet("0"), ("a",)) != ResourceSet(IdSet("0"), ("b",))
    assert "children" not in repr(ResourceSet.parse(r("0-3")))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "Input data was truncated"),
        (b'{"version": 1', "Input data was truncated"),
        (b"junk", "JSON is malformed: invalid character (byte 0)"),
        (r("0") + b" x", "JSON is malformed: trailing characters"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "Object missing required field `version`"),
        (b'{"version": 1}', "Object missing required field `execution`"),
        (b'{"version": 2, "execution": {"R_lite": []}}', "Invalid enum value 2 - at `$.version`"),
        (b'{"version": 1.0, "execution": {"R_lite": []}}', "Expected `int`, got `float` - at `$.version`"),
        (b'{"version": true, "execution": {"R_lite": []}}', "Expected `int`, got `bool` - at `$.version`"),
        (b'{"version": 1, "execution": []}', "Expected `object`, got `array` - at `$.execution`"),
        (b'{"version": 1, "execution": {}}', "Object missing required field `R_lite` - at `$.execution`"),
        (
            b'{"version": 1, "execution": {"R_lite": {}}}',
            "Expected `array`, got `object` - at `$.execution.R_lite`",
        ),
        (
            b'{"version": 1, "execution": {"R_lite": [3]}}',
            "Expected `object`, got `int` - at `$.execution.R_lite[0]`",
        ),
        (
            b'{"version": 1, "execution": {"R_lite": [{"rank": "0"}, {}]}}',
            "Object missing required field `rank` - at `$.execution.R_lite[1]`",
        ),
        (
            b'{"version": 1, "execution": {"R_lite": [{"rank": 0}]}}',
            "Expected `str`, got `int` - at `$.execution.R_lite[0].rank`",
        ),
        (b'{"version": 1, "execution": {"R_lite": [{"rank": "\xff"}]}}', "Invalid UTF-8"),
        (r("0", nodelist="vm"), "Expected `array | null`, got `str` - at `$.execution.nodelist`"),
        (r("0", nodelist=["vm", 1]), "Expected `str`, got `int` - at `$.execution.nodelist[1]`"),
        (r(), "no ranks - at `$.execution.R_lite`"),
        (r("", "[]"), "no ranks - at `$.execution.R_lite`"),
    ],
)
def test_what_is_no_r_is_refused_with_the_path(text: bytes, problem: str) -> None:
    with pytest.raises(ResourceSetError, match=f"^{re.escape(f'not an R (RFC 20): {problem}')}"):
        ResourceSet.parse(text)


@pytest.mark.parametrize("idset", ["all", "3-1", "1,1", "01", "0-3 ", "4294967295", "-1"])
@pytest.mark.parametrize("before", [0, 2])
def test_a_bad_idset_is_refused_with_the_path(idset: str, before: int) -> None:
    place = re.escape(f" - at `$.execution.R_lite[{before}].rank`")
    with pytest.raises(ResourceSetError, match=rf"^not an R \(RFC 20\): not an idset: .* at character .*{place}$"):
        ResourceSet.parse(r(*["0-3"] * before, idset))


def test_an_r_that_is_nested_too_deep_is_refused() -> None:
    with pytest.raises(ResourceSetError):
        ResourceSet.parse(r("0")[:-1] + b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")


def test_an_r_that_was_taken_can_be_written() -> None:
    try:
        resources = ResourceSet.parse(r("0")[:-1] + b', "x": "\xff"}')
    except ResourceSetError:
        return
    resources.to_json()


@pytest.mark.parametrize("number", ["1e999", "9" * 5000])
def test_what_is_out_of_range_is_said_when_it_is_needed(number: str) -> None:
    resources = ResourceSet.parse(r("0")[:-1] + f', "x": {number}}}'.encode())
    for ask in (ResourceSet.to_json, lambda resources: resources.fragment(NO_RANKS)):
        with pytest.raises(ResourceSetError, match="out of range"):
            ask(resources)


@given(
    st.recursive(
        st.one_of(st.none(), st.integers(), st.text()), lambda of: st.lists(of) | st.dictionaries(st.text(), of)
    )
)
def test_any_json_is_an_r_or_a_resource_set_error(value: object) -> None:
    for document in (value, {"version": 1, "execution": value}, {"version": 1, "execution": {"R_lite": value}}):
        with pytest.raises(ResourceSetError, match=r"^not an R \(RFC 20\): "):
            ResourceSet.parse(json.dumps(document).encode())


# -- hosts --


def test_hosts_and_ranks_go_together_in_order() -> None:
    resources = ResourceSet.parse(r("3-5", "17,20-21", nodelist=["a[0-1]", "b,c[07-08]", "b"]))
    assert {str(rank): str(resources.hosts_of(IdSet([rank]))) for rank in resources.ranks} == {
        "3": "a0",
        "4": "a1",
        "5": "b",
        "17": "c07",
        "20": "c08",
        "21": "b",
    }
    assert str(resources.hosts_of(IdSet("4-17,20"))) == "a1,b,c[07-08]"
    assert str(resources.ranks_of("a1")) == "4"
    assert str(resources.ranks_of("c08")) == "20"
    assert str(resources.ranks_of("b")) == "5,21"
    assert resources.ranks_of("c7") == NO_RANKS


def test_ranks_that_are_not_rs_have_no_hosts() -> None:
    resources = ResourceSet.parse(r("3-5", nodelist=["a[0-2]"]))
    assert str(resources.hosts_of(IdSet("0,2-3,5,9-4000000000"))) == "a[0,2]"
    assert str(resources.hosts_of(IdSet("0-2"))) == ""
    assert str(resources.hosts_of(NO_RANKS)) == ""


@given(st.frozensets(st.integers(0, 30), min_size=1), st.frozensets(st.integers(0, 32)), st.data())
def test_hosts_of_is_the_list_of_the_ranks_hosts(
    ranks: frozenset[int], asked: frozenset[int], data: st.DataObject
) -> None:
    names = [data.draw(st.sampled_from(["vm", "a1", "a2", "a3", "b09", "b10"])) for _ in ranks]
    resources = ResourceSet(IdSet(ranks), (",".join(names),))
    by_rank = dict(zip(sorted(ranks), names, strict=True))
    hosts = resources.hosts_of(IdSet(asked))
    assert hosts is not None
    each = [str(hosts.take([(k, k)])) for k in range(hosts.count)]
    assert each == [name for rank, name in by_rank.items() if rank in asked]
    for host in {*names, "a4"}:
        assert set(resources.ranks_of(host)) == {rank for rank, name in by_rank.items() if name == host}


@pytest.mark.parametrize("nodelist", [None, ()])
def test_without_a_nodelist_there_are_no_hosts(nodelist: tuple[str, ...] | None) -> None:
    resources = ResourceSet(IdSet("0-3"), nodelist)
    assert resources.hosts() is None
    assert resources.hosts_of(IdSet("0")) is None
    assert resources.ranks_of("vm") == NO_RANKS


@pytest.mark.parametrize(
    ("nodelist", "problem"),
    [
        (["a[0-3"], "not a hostlist: unbalanced or repeated brackets at character 1 ('a[0-3')"),
        (["a[3-0]"], "not a hostlist: '3-0' at character 3"),
        (["a[0-2]"], "3 hosts for 4 ranks"),
        (["a[0-3]", "b"], "5 hosts for 4 ranks"),
        ([""], "0 hosts for 4 ranks"),
        (["a[0-999999999999]"], "1000000000000 hosts for 4 ranks"),
    ],
)
def test_a_bad_nodelist_is_refused_with_the_path_when_it_is_looked_at(nodelist: list[str], problem: str) -> None:
    resources = ResourceSet.parse(r("0-3", nodelist=nodelist))
    message = rf"^{re.escape(f'not an R (RFC 20): {problem}')}.* - at `\$\.execution\.nodelist`$"
    with pytest.raises(ResourceSetError, match=message):
        resources.hosts()
    with pytest.raises(ResourceSetError, match=message):
        resources.hosts_of(IdSet("0"))
    with pytest.raises(ResourceSetError, match=message):
        resources.ranks_of("a0")


def test_four_billion_ranks_have_hosts_at_once() -> None:
    resources = ResourceSet(IdSet("0-3999999999"), ("n[0-3999999999]",))
    assert str(resources.hosts_of(IdSet("7,1000000-3000000000"))) == "n[7,1000000-3000000000]"
    assert str(resources.ranks_of("n3999999999")) == "3999999999"


# -- the annotation --


@pytest.mark.parametrize(
    ("summary", "ranks"),
    [
        ("rank0/core0", "0"),
        ("rank[0-3]/core[0-1]", "0-3"),
        ("rank456/core0 rank[505-507]/core1", "456,505-507"),
        ("rank5/core0 rank3/core1  rank5/gpu0", "3,5"),
        ("rank[0-3]", "0-3"),
        ("rank2/core[0-1],gpu[0,2]", "2"),
        ("", None),
        (" ", None),
        ("junk", None),
        ("rank", None),
        ("rank/core0", None),
        ("rank[]/core0", None),
        ("rank[5-3]/core0", None),
        ("rank01/core0", None),
        ("rank4294967295/core0", None),
        ("rank[0-3/core0", None),
        ("ranks0/core0", None),
        ("rank0/core0 ssd1", None),
        ("ssd1 rank0/core0", None),
        ("rank0-3/core0", None),
        ("xrank0/core0", None),
    ],
)
def test_the_resource_summary_says_the_ranks_or_nothing(summary: str, ranks: str | None) -> None:
    found = ranks_of_summary({"user": {}, "sched": {"resource_summary": summary}})
    assert found == (None if ranks is None else IdSet(ranks))


@pytest.mark.parametrize(
    "annotations",
    [
        None,
        "rank0/core0",
        [],
        {},
        {"user": {"resource_summary": "rank0/core0"}},
        {"sched": None},
        {"sched": "rank0/core0"},
        {"sched": {}},
        {"sched": {"resource_summary": None}},
        {"sched": {"resource_summary": 0}},
        {"sched": {"resource_summary": ["rank0/core0"]}},
    ],
)
def test_annotations_of_another_form_say_nothing(annotations: object) -> None:
    assert ranks_of_summary(annotations) is None
