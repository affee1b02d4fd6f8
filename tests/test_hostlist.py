"""Hostlist reads and writes RFC 29, keeps order and repeats, and never spells a range out."""

import re
import sys
import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from partialrelease import Hostlist, HostlistError

VECTORS = [  # RFC 29, Test Vectors
    ("", []),
    ("foox,fooy,fooz", ["foox", "fooy", "fooz"]),
    ("[1-3,5-6]", ["1", "2", "3", "5", "6"]),
    ("foo[1-5]", ["foo1", "foo2", "foo3", "foo4", "foo5"]),
    ("foo[0-4]-eth2", ["foo0-eth2", "foo1-eth2", "foo2-eth2", "foo3-eth2", "foo4-eth2"]),
    ("foo1,foo1,foo1", ["foo1", "foo1", "foo1"]),
    ("[00-02]", ["00", "01", "02"]),
    ("[00-2]", ["00", "01", "02"]),
    ("foo[1,1,2,1]", ["foo1", "foo1", "foo2", "foo1"]),
    ("foo[005,4,11-13]", ["foo005", "foo004", "foo011", "foo012", "foo013"]),
]


def expand(hosts: Hostlist) -> list[str]:
    """Each host by itself."""
    return [str(hosts.take([(position, position)])) for position in range(hosts.count)]


LETTERS = st.text(alphabet="ab-.01", max_size=4)


@st.composite
def hostlists(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A text, and the names that it stands for."""
    words: list[str] = []
    names: list[str] = []
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            name = draw(LETTERS.filter(bool))
            words.append(name)
            names.append(name)
            continue
        prefix, suffix = draw(LETTERS), draw(LETTERS)
        elements, width = [], 0
        for _ in range(draw(st.integers(1, 4))):
            low = draw(st.sampled_from([0, 1, 7, 8, 9, 10, 98, 99, 100]))
            high = low + draw(st.sampled_from([0, 0, 1, 3]))
            first = f"{low:0{draw(st.integers(1, 3))}d}"
            last = f"{high:0{draw(st.integers(1, 3))}d}"
            elements.append(first if low == high and draw(st.booleans()) else f"{first}-{last}")
            width = width or (len(first) if first.startswith("0") else 1)
            names += [f"{prefix}{number:0{width}d}{suffix}" for number in range(low, high + 1)]
        words.append(f"{prefix}[{','.join(elements)}]{suffix}")
    return ",".join(words), names


@pytest.mark.parametrize(("text", "names"), VECTORS)
def test_the_vectors_of_rfc_29(text: str, names: list[str]) -> None:
    hosts = Hostlist.parse(text)
    assert expand(hosts) == names
    assert hosts.count == len(names)
    assert expand(Hostlist.parse(str(hosts))) == names


@given(hostlists())
def test_text_stands_for_its_names_in_order_and_reads_back(given_: tuple[str, list[str]]) -> None:
    text, names = given_
    hosts = Hostlist.parse(text)
    assert hosts.count == len(names)
    assert expand(hosts) == names
    assert expand(Hostlist.parse(str(hosts))) == names
    assert str(Hostlist.parse(str(hosts))) == str(hosts)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a1,a2,a3", "a[1-3]"),
        ("a1,a2,a3,b,c4", "a[1-3],b,c4"),
        ("b,a1", "b,a1"),
        ("vm,vm", "vm,vm"),
        ("a[1]", "a1"),
        ("a[1-1]", "a1"),
        ("a[7]-ib", "a7-ib"),
        ("a[1-2],a[3-4]x,a[5]x", "a[1-2],a[3-5]x"),
        ("a[8-9],a10", "a[8-10]"),
        ("a[08-09],a10", "a[08-09],a10"),  # a010 would be another host
        ("a01,a2", "a01,a2"),
        ("a[3,2,1]", "a[3,2,1]"),
        ("a[2-3],a[2-3]", "a[2-3,2-3]"),
        ("[5]", "5"),
    ],
)
def test_neighbours_are_written_together_where_that_reads_back(text: str, written: str) -> None:
    assert str(Hostlist.parse(text)) == written


def test_empty_elements_are_left_out() -> None:
    assert expand(Hostlist.parse(",a,,b1,")) == ["a", "b1"]


@given(hostlists(), st.lists(st.integers(0, 24), unique=True, max_size=6))
def test_take_is_slicing(given_: tuple[str, list[str]], ends: list[int]) -> None:
    text, names = given_
    ends.sort()
    spans = list(zip(ends[::2], (end - 1 for end in ends[1::2]), strict=False))
    expected = [name for first, last in spans for name in names[first : last + 1]]
    taken = Hostlist.parse(text).take(spans)
    assert taken.count == len(expected)
    assert expand(taken) == expected


@given(hostlists(), st.integers(0, 24))
@example(("n[00,10,00]", ["n00", "n10", "n00"]), 1)
def test_the_text_of_what_was_taken_reads_back(given_: tuple[str, list[str]], first: int) -> None:
    text, names = given_
    taken = Hostlist.parse(text).take([(first, len(names))])
    assert expand(Hostlist.parse(str(taken))) == names[first:]


@given(hostlists())
def test_take_of_adjacent_spans_is_all(given_: tuple[str, list[str]]) -> None:
    text, names = given_
    hosts = Hostlist.parse(text)
    cuts = sorted({0, len(names) // 3, len(names) // 2, len(names)})
    assert expand(hosts.take((first, end - 1) for first, end in pairwise(cuts))) == names
    assert hosts.take([(0, len(names))]) == hosts
    assert hosts.take([]) == Hostlist()


@given(hostlists(), LETTERS)
def test_find_gives_every_position_of_a_name(given_: tuple[str, list[str]], other: str) -> None:
    text, names = given_
    hosts = Hostlist.parse(text)
    for name in {*names, other, *(f"{name}0" for name in names), *(name[:-1] for name in names)}:
        assert hosts.find(name) == tuple(position for position, found in enumerate(names) if found == name)


@pytest.mark.parametrize("name", ["n", "n4", "n01", "n1 ", "n-1", "n٣", "n+1", "n1_0", "m1", "1", "", "n" + "1" * 19])
def test_find_takes_no_other_way_to_write_a_number(name: str) -> None:
    assert Hostlist.parse("n[1-3],n10").find(name) == ()


def test_a_hostlist_is_a_value() -> None:
    assert Hostlist.parse("a[1-3]") == Hostlist.parse("a[1-3]") != Hostlist.parse("a[1-4]")
    assert len({Hostlist.parse("a"), Hostlist.parse("a"), Hostlist.parse("b"), Hostlist()}) == 3
    with pytest.raises(AttributeError):
        Hostlist().rows = ()  # type: ignore[misc]


def test_a_bomb_costs_nothing() -> None:
    begin = time.perf_counter()
    hosts = Hostlist.parse("n[0-999999999]")
    assert hosts.count == 1_000_000_000
    assert str(hosts) == "n[0-999999999]"
    assert str(hosts.take([(5, 7), (999_999_998, 2_000_000_000)])) == "n[5-7,999999998-999999999]"
    assert hosts.find("n123456789") == (123_456_789,)
    many = Hostlist.parse(",".join(["n[0-999999999999999999]"] * 100))
    assert many.count == 10**20 > sys.maxsize
    assert str(many.take([(10**20 - 1, 10**20 - 1)])) == "n999999999999999999"
    assert time.perf_counter() - begin < 0.2


def test_long_lists_take_time_in_proportion() -> None:
    begin = time.perf_counter()
    assert str(Hostlist.parse(",".join(f"node{n}" for n in range(50_000)))) == "node[0-49999]"
    assert Hostlist.parse("1" * 50_000 + "x").count == 1
    assert str(Hostlist.parse("1" * 50_000)) == "1" * 50_000
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a b", "an unexpected ' ' at character 2"),
        ("a,\n", r"an unexpected '\n' at character 3"),
        ("é", "an unexpected 'é' at character 1"),
        ("a\x7f", r"an unexpected '\x7f' at character 2"),
        ("foo[1-2", "unbalanced or repeated brackets at character 1 ('foo[1-2')"),
        ("a,foo]", "unbalanced or repeated brackets at character 3 ('foo]')"),
        ("foo[[1]]", "unbalanced or repeated brackets at character 1 ('foo[[1]]')"),
        ("b[1],a[1-2]c[1-2]", "unbalanced or repeated brackets at character 6 ('a[1-2]c[1-2]')"),
        ("[" * 50, f"unbalanced or repeated brackets at character 1 ('{'[' * 20}')"),
        ("foo[]", "'' at character 5 is not a number or an ascending range"),
        ("foo[1,]", "'' at character 7 is not a number or an ascending range"),
        ("foo[1-2,a]", "'a' at character 9 is not a number or an ascending range"),
        ("foo[1--2]", "'1--2' at character 5 is not a number or an ascending range"),
        ("x,foo[2-1]", "'2-1' at character 7 is not a number or an ascending range"),
        ("a[1000000000000000000]", "'1000000000000000000' at character 3 is not a number or an ascending range"),
        (f"a[{'x' * 50}]", f"'{'x' * 20}' at character 3 is not a number or an ascending range"),
    ],
)
def test_the_message_names_what_is_wrong_and_where(text: str, problem: str) -> None:
    with pytest.raises(HostlistError, match=f"^{re.escape(f'not a hostlist: {problem}')}"):
        Hostlist.parse(text)


@given(st.one_of(st.text(), st.text(alphabet="ab01,-[]")))
def test_any_text_is_a_hostlist_or_a_hostlist_error(text: str) -> None:
    try:
        hosts = Hostlist.parse(text)
    except HostlistError:
        with pytest.raises(HostlistError, match=r"(?s)^not a hostlist: .* at character [0-9]+"):
            Hostlist.parse(text)
    else:
        assert str(Hostlist.parse(str(hosts))) == str(hosts)
        assert Hostlist.parse(str(hosts)).count == hosts.count
