"""IdSet is frozenset's algebra on ids, and its text form is RFC 22, strictly."""

import copy
import json
import operator
import pickle
import re
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partialrelease import ALL_RANKS, MAX_ID, NO_RANKS, IdSet, IdSetError

VERDICTS = json.loads((Path(__file__).parent / "data" / "idset-verdicts.json").read_text())

# Ids where something could go wrong: few, so that sets meet; both sides of a Roaring container's border; the largest.
IDS = st.one_of(st.integers(0, 12), st.integers(65530, 65542), st.integers(MAX_ID - 6, MAX_ID))


@st.composite
def some_ids(draw: st.DrawFn) -> frozenset[int]:
    """Single ids and runs of ids, some long enough for each kind of container."""
    singles = draw(st.frozensets(IDS, max_size=12))
    runs = draw(st.lists(st.tuples(IDS, st.sampled_from([2, 5, 70, 5000])), max_size=2))
    return singles.union(*(range(low, min(low + length, MAX_ID + 1)) for low, length in runs))


SETS = some_ids()


def runs_of(ids: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for id_ in sorted(ids):
        if runs and runs[-1][1] == id_ - 1:
            runs[-1] = (runs[-1][0], id_)
        else:
            runs.append((id_, id_))
    return runs


def text_of(ids: Iterable[int]) -> str:
    return ",".join(f"{low}-{high}" if low < high else f"{low}" for low, high in runs_of(ids))


# -- algebra --


@pytest.mark.parametrize("operation", [operator.or_, operator.and_, operator.sub, operator.xor])
@given(SETS, SETS)
def test_algebra_is_frozensets(operation: Callable[[Any, Any], Any], a: frozenset[int], b: frozenset[int]) -> None:
    x, y = IdSet(a), IdSet(b)
    result = operation(x, y)
    assert type(result) is IdSet
    assert frozenset(result) == operation(a, b)
    assert (frozenset(x), frozenset(y)) == (a, b)  # the operands are as they were


@pytest.mark.parametrize("compare", [operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne])
@given(SETS, SETS, st.booleans())
def test_comparison_is_frozensets(
    compare: Callable[[Any, Any], bool], a: frozenset[int], b: frozenset[int], nested: bool
) -> None:
    b = a | b if nested else b
    assert compare(IdSet(a), IdSet(b)) is compare(a, b)
    assert compare(IdSet(b), IdSet(a)) is compare(b, a)
    assert compare(IdSet(a), IdSet(a)) is compare(a, a)


@given(SETS, SETS)
def test_isdisjoint_is_frozensets(a: frozenset[int], b: frozenset[int]) -> None:
    assert IdSet(a).isdisjoint(IdSet(b)) is a.isdisjoint(b)
    assert IdSet(a).isdisjoint(IdSet(b - a)) is True
    assert IdSet(a).isdisjoint(IdSet(a)) is (not a)


@pytest.mark.parametrize("operation", [operator.or_, operator.and_, operator.sub, operator.xor])
@given(SETS)
def test_algebra_of_a_set_with_itself_and_with_none(operation: Callable[[Any, Any], Any], a: frozenset[int]) -> None:
    x = IdSet(a)
    assert frozenset(operation(x, x)) == operation(a, a)
    assert frozenset(operation(x, NO_RANKS)) == operation(a, frozenset())
    assert frozenset(operation(NO_RANKS, x)) == operation(frozenset(), a)


def test_an_operand_that_is_the_result_is_returned_as_it_is() -> None:
    a, equal, part = IdSet("0-3,7"), IdSet("0-3,7"), IdSet("1,7")
    assert a | a is a | NO_RANKS is NO_RANKS | a is a
    assert a & a is a & equal is a
    assert a & part is part & a is part
    assert a - a is NO_RANKS
    empty = a & IdSet("9")
    assert empty - a is empty
    assert a - empty is a


@pytest.mark.parametrize("other", [{0}, frozenset({0}), [0], "0", 0, None])
@pytest.mark.parametrize(
    "operation",
    [
        operator.or_,
        operator.and_,
        operator.sub,
        operator.xor,
        operator.le,
        operator.lt,
        operator.ge,
        operator.gt,
    ],
)
def test_only_idsets_go_together(operation: Callable[[Any, Any], Any], other: object) -> None:
    with pytest.raises(TypeError):
        operation(IdSet("0"), other)
    with pytest.raises(TypeError):
        operation(other, IdSet("0"))


@pytest.mark.parametrize("other", [{0}, frozenset({0}), [0], "0", 0, None])
def test_an_idset_equals_only_idsets(other: object) -> None:
    assert (IdSet("0") == other) is False
    assert (IdSet("0") != other) is True


@given(SETS, SETS)
def test_equal_sets_have_equal_hashes(a: frozenset[int], b: frozenset[int]) -> None:
    assert hash(IdSet(a)) == hash(IdSet(sorted(a, reverse=True))) == hash(IdSet(text_of(a)))
    assert hash(IdSet(a) | IdSet(b)) == hash(IdSet(a | b))
    assert len({IdSet(a), IdSet(b), IdSet(a)}) == len({a, b})


def test_hashes_tell_common_sets_apart() -> None:
    sets = [IdSet(text) for text in ("", "0", "1", "0-1", "0-2", "0,2", "1-2", "0-3")]
    assert len({hash(ids) for ids in sets}) == len(sets)
    assert hash(IdSet("0,1,3")) == hash(IdSet("0,2,3"))  # the price of a hash that visits no id
    assert IdSet("0,1,3") != IdSet("0,2,3")


# -- contents --


@given(SETS)
def test_contents_are_frozensets_in_ascending_order(a: frozenset[int]) -> None:
    ids = IdSet(a)
    assert list(ids) == sorted(a)
    assert len(ids) == len(a)
    assert bool(ids) is bool(a)


@given(SETS, st.one_of(IDS, st.integers(), st.sampled_from([-1, MAX_ID + 1, 2**32, 2**64, True, 0.0, "0", None])))
def test_membership_is_frozensets_for_ints_and_false_for_all_else(a: frozenset[int], item: object) -> None:
    assert (item in IdSet(a)) is (isinstance(item, int) and item in a)


def test_the_smallest_and_the_largest_id_are_ids() -> None:
    assert 0 in IdSet("0")
    assert MAX_ID in IdSet([MAX_ID])
    assert 0 not in IdSet("1")
    assert MAX_ID not in IdSet([MAX_ID - 1])


@given(SETS)
def test_runs_are_the_maximal_runs(a: frozenset[int]) -> None:
    assert list(IdSet(a).runs()) == runs_of(a)


@given(SETS.filter(bool))
def test_min_and_max_are_the_ends(a: frozenset[int]) -> None:
    assert (IdSet(a).min(), IdSet(a).max()) == (min(a), max(a))


def test_the_empty_set_has_no_ends_and_no_ids() -> None:
    with pytest.raises(ValueError, match="minimum"):
        NO_RANKS.min()
    with pytest.raises(ValueError, match="maximum"):
        NO_RANKS.max()
    with pytest.raises(IndexError, match=re.escape("no id at position 0 of IdSet(''), which has 0")):
        NO_RANKS.nth(0)
    assert list(NO_RANKS.runs()) == []
    assert list(NO_RANKS) == []
    assert NO_RANKS == IdSet() == IdSet("") == IdSet("[]") == IdSet([])


@given(SETS, st.one_of(IDS, st.integers(0, MAX_ID)))
def test_index_counts_the_smaller_ids(a: frozenset[int], id_: int) -> None:
    assert IdSet(a).index(id_) == sum(other < id_ for other in a)


@given(SETS)
def test_nth_is_the_way_back_from_index(a: frozenset[int]) -> None:
    ids, ordered = IdSet(a), sorted(a)
    for position in {0, 1, len(a) // 2, len(a) - 1} & set(range(len(a))):
        assert ids.nth(position) == ordered[position]
        assert ids.index(ids.nth(position)) == position
    for position in (-1, len(a), len(a) + 1):
        with pytest.raises(IndexError, match=f"no id at position {position} of .*, which has {len(a)}"):
            ids.nth(position)


# -- from ids --


@given(SETS)
def test_any_iterable_of_ids_makes_the_set(a: frozenset[int]) -> None:
    expected = IdSet(text_of(a))
    made: tuple[Iterable[int], ...] = (a, sorted(a), tuple(a), iter(a), dict.fromkeys(a), (i for i in a), expected)
    for ids in made:
        assert IdSet(ids) == expected


@pytest.mark.parametrize("ids", [range(5), range(5, 2), range(3, 40, 7), range(9, -1, -1), range(65530, 65540)])
def test_a_range_makes_the_set(ids: range) -> None:
    assert list(IdSet(ids)) == sorted(ids)


@pytest.mark.parametrize("ids", [[-1], [0, MAX_ID + 1], [2**32], [2**70], range(-2, 3), range(2**32 - 2, 2**32)])
def test_numbers_that_are_no_ids_are_refused(ids: Iterable[int]) -> None:
    with pytest.raises(IdSetError, match=r"^ids are integers from 0 to 4294967294[:,] "):
        IdSet(ids)


@pytest.mark.parametrize(
    "ids",
    [
        5,
        [None],
        ["0"],
        [[1]],
        None,
        [1.5],
    ],
)
def test_what_is_no_iterable_of_ints_is_refused(ids: Any) -> None:
    with pytest.raises(IdSetError, match=r"^ids are integers from 0 to 4294967294: "):
        IdSet(ids)


# -- immutable --


def test_an_idset_cannot_be_changed() -> None:
    ids = IdSet("0-3")
    with pytest.raises(AttributeError, match="IdSet is immutable: cannot set '_bits'"):
        ids._bits = IdSet("7")._bits
    with pytest.raises(AttributeError, match="IdSet is immutable: cannot set 'more'"):
        ids.more = 1
    with pytest.raises(AttributeError, match="IdSet is immutable: cannot delete '_bits'"):
        del ids._bits
    with pytest.raises(AttributeError):
        ids.__dict__  # noqa: B018  # there is none
    assert str(ids) == "0-3"


def test_an_idset_does_not_follow_what_it_was_made_from() -> None:
    source = [1, 2]
    ids = before = IdSet(source)
    source.append(3)
    ids |= IdSet("9")
    assert (str(before), str(ids)) == ("1-2", "1-2,9")


@given(SETS)
def test_copies_and_pickles_are_equal(a: frozenset[int]) -> None:
    ids = IdSet(a)
    assert copy.copy(ids) is ids
    assert copy.deepcopy(ids) is ids
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(ids, protocol))
        assert type(again) is IdSet
        assert again == ids
        assert hash(again) == hash(ids)


# -- text --


@given(SETS)
def test_text_is_canonical_and_reads_back(a: frozenset[int]) -> None:
    ids = IdSet(a)
    assert str(ids) == text_of(a)
    assert IdSet(str(ids)) == IdSet(f"[{ids}]") == ids
    assert repr(ids) == f"IdSet({str(ids)!r})"
    assert eval(repr(ids), {"IdSet": IdSet}) == ids


Element = tuple[int, int]


def rfc22(text: str) -> list[Element] | int:
    """The elements of an idset as RFC 22 has it, or the character (from 1) at which the first wrong element begins."""
    bracketed = len(text) >= 2 and text[0] == "[" and text[-1] == "]"
    body, place = (text[1:-1], 2) if bracketed else (text, 1)
    if not body:
        return []
    elements: list[Element] = []
    for element in body.split(","):
        match = re.fullmatch("(0|[1-9][0-9]*)(?:-(0|[1-9][0-9]*))?", element)
        if match is None:
            return place
        low, high = match[1], match[2] or match[1]
        if max(len(low), len(high)) > 10 or int(high) > MAX_ID or (match[2] and int(high) <= int(low)):
            return place
        if elements and int(low) <= elements[-1][1]:
            return place
        elements.append((int(low), int(high)))
        place += len(element) + 1
    return elements


@st.composite
def valid_texts(draw: st.DrawFn) -> str:
    """Valid, and not always canonical: neighbours apart, or in brackets."""
    ends: list[int] = sorted(draw(st.frozensets(IDS, max_size=20)))
    words: list[str] = []
    while ends:
        low = ends.pop(0)
        is_range: bool = draw(st.booleans())
        words.append(f"{low}-{ends.pop(0)}" if ends and is_range else f"{low}")
    text = ",".join(words)
    bracketed: bool = draw(st.booleans())
    return f"[{text}]" if bracketed else text


@settings(deadline=None)  # nearly all ids but a few cost milliseconds
@given(valid_texts())
def test_valid_text_means_what_rfc_22_says_and_has_one_canonical_text(text: str) -> None:
    elements = rfc22(text)
    assert isinstance(elements, list)
    ids = IdSet(text)
    merged: list[Element] = []
    for low, high in elements:
        if merged and merged[-1][1] + 1 == low:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    assert list(ids.runs()) == merged
    canonical = ",".join(f"{low}-{high}" if low < high else f"{low}" for low, high in merged)
    assert str(ids) == canonical
    assert str(IdSet(canonical)) == canonical


@st.composite
def nearly_valid_texts(draw: st.DrawFn) -> str:
    """A valid text in which a few characters are other ones."""
    text = list(draw(valid_texts()))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(text)))
        text[place : place + draw(st.integers(0, 1))] = draw(st.sampled_from(["", *"0123456789,-[] ", "٣", "\n"]))
    return "".join(text)


@pytest.mark.requirement("PR-26")
@settings(deadline=None)
@given(st.one_of(st.text(alphabet="0123459,,--[]"), nearly_valid_texts(), st.text()))
def test_a_text_is_taken_exactly_if_rfc_22_takes_it_and_else_the_message_names_the_place(text: str) -> None:
    expected = rfc22(text)
    if isinstance(expected, list):
        assert len(IdSet(text)) == sum(high - low + 1 for low, high in expected)
    else:
        with pytest.raises(IdSetError, match=rf"^not an idset: (?!None).* at character {expected} \(") as error:
            IdSet(text)
        assert str(error.value).endswith('; expected ascending ids and ranges such as "0-3,7" (RFC 22)')


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (",", "an empty element at character 1 ('')"),
        ("1,,2", "an empty element at character 3 ('')"),
        ("1-2,", "an empty element at character 5 ('')"),
        ("[1,]", "an empty element at character 4 ('')"),
        ("1, 2", "an unexpected ' ' at character 3 (' 2')"),
        ("0-3,all", "an unexpected 'a' at character 5 ('all')"),
        ("[1", "an unexpected '[' at character 1 ('[1')"),
        ("[[1]]", "an unexpected '[' at character 2 ('[1]')"),
        ("1\n", r"an unexpected '\n' at character 1 ('1\n')"),
        ("٣", "an unexpected '٣' at character 1 ('٣')"),
        ("-", "not a number or a range at character 1 ('-')"),
        ("-1", "not a number or a range at character 1 ('-1')"),
        ("1-", "not a number or a range at character 1 ('1-')"),
        ("0,1-2-3", "not a number or a range at character 3 ('1-2-3')"),
        ("00", "a leading zero at character 1 ('00')"),
        ("1-03", "a leading zero at character 1 ('1-03')"),
        ("5,01-3", "a leading zero at character 3 ('01-3')"),
        ("4294967295", "an id above 4294967294 at character 1 ('4294967295')"),
        ("0,4294967295", "an id above 4294967294 at character 3 ('4294967295')"),
        ("0-1,4294967295", "an id above 4294967294 at character 5 ('4294967295')"),
        ("0-4294967295", "an id above 4294967294 at character 1 ('0-4294967295')"),
        ("7,0-4294967295", "an id above 4294967294 at character 3 ('0-4294967295')"),
        ("0,11111111111", "an id above 4294967294 at character 3 ('11111111111')"),
        ("4294967294,4294967294", "an id that is not above 4294967294 at character 12 ('4294967294')"),
        ("x" * 24, f"an unexpected 'x' at character 1 ('{'x' * 24}')"),
        ("x" * 25, f"an unexpected 'x' at character 1 ('{'x' * 20}...')"),
        ("1" * 5000, f"an id above 4294967294 at character 1 ('{'1' * 20}...')"),
        ("3-1", "a range that does not ascend at character 1 ('3-1')"),
        ("0,3-3", "a range that does not ascend at character 3 ('3-3')"),
        ("1,1", "an id that is not above 1 at character 3 ('1')"),
        ("0,2,1", "an id that is not above 2 at character 5 ('1')"),
        ("0-3,3-5", "an id that is not above 3 at character 5 ('3-5')"),
        ("0-3,2", "an id that is not above 3 at character 5 ('2')"),
        ("5,3-9", "an id that is not above 5 at character 3 ('3-9')"),
    ],
)
def test_the_message_names_what_is_wrong_and_where(text: str, problem: str) -> None:
    with pytest.raises(IdSetError, match=f"^{re.escape(f'not an idset: {problem}; expected ')}"):
        IdSet(text)


# -- agreement with libidset (flux-core), as recorded --

EMPTY_ELEMENTS = {",", ",1", "1,", "1,,2", "1-2,", "[,]", "[1,]", "53,", ",344", ",295123"}  # RFC 22 has none
READ_AS_ZERO = {"4294967296"}  # libidset's arithmetic wraps
ABOVE_ITS_LIMIT = {"2147483648", "4294967294", "0-4294967294"}  # RFC 22 has no limit


def verdict(text: str) -> dict[str, Any]:
    try:
        ids = IdSet(text)
    except IdSetError:
        return {"in": text, "ok": False}
    return {"in": text, "ok": True, "out": str(ids), "count": len(ids)}


def test_verdicts_differ_from_libidsets_on_exactly_three_groups_of_texts() -> None:
    assert len(VERDICTS) == 227
    differ = {theirs["in"] for theirs in VERDICTS if theirs != verdict(theirs["in"])}
    assert differ == EMPTY_ELEMENTS | READ_AS_ZERO | ABOVE_ITS_LIMIT
    taken = {text: verdict(text)["ok"] for text in differ}
    assert taken == dict.fromkeys(EMPTY_ELEMENTS | READ_AS_ZERO, False) | dict.fromkeys(ABOVE_ITS_LIMIT, True)


# -- long texts are parsed a part at a time --

PART = 1 << 16


def kinds_of_elements() -> dict[str, list[str]]:
    """Elements of more than three parts together."""
    count = 40_000
    return {
        "singles": [f"{id_}" for id_ in range(100_000, 100_000 + 2 * count, 2)],
        "ranges": [f"{id_}-{id_ + 1}" for id_ in range(100_000, 100_000 + 3 * count, 3)],
        "singles, then ranges": [
            *(f"{id_}" for id_ in range(100_000, 100_000 + 2 * count, 2)),
            *(f"{id_}-{id_ + 1}" for id_ in range(500_000, 500_000 + 3 * count, 3)),
        ],
        "mixed": [f"{id_}-{id_ + 2}" if id_ % 7 else f"{id_}" for id_ in range(100_000, 100_000 + 4 * count, 4)],
    }


LONG = kinds_of_elements()


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize("bracketed", [False, True])
def test_long_text_reads_back(kind: str, bracketed: bool) -> None:
    text = ",".join(LONG[kind])
    assert len(text) > 3 * PART
    ids = IdSet(f"[{text}]" if bracketed else text)
    assert str(ids) == text
    assert len(ids) == sum(int(high or low) - int(low) + 1 for low, _, high in (e.partition("-") for e in LONG[kind]))


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize("wrong", ["", "x", "5", "007", "4294967295", "3-2", "1--2"])
def test_an_error_anywhere_in_a_long_text_is_found_and_placed(kind: str, wrong: str) -> None:
    elements = LONG[kind]
    per_part = PART // (len(elements[0]) + 1)
    near = [part * per_part + step for part in (1, 2) for step in range(-2, 4)]
    for index in (1, *near, len(elements) // 2, len(elements) - 1):
        copied = [*elements[:index], wrong, *elements[index + 1 :]]
        place = sum(len(element) + 1 for element in elements[:index]) + 1
        with pytest.raises(IdSetError, match=f" at character {place} "):
            IdSet(",".join(copied))


@pytest.mark.parametrize("separator", ["-", ","])
@pytest.mark.parametrize("length", range(PART - 3, PART + 4))
def test_text_that_ends_or_turns_wrong_near_a_boundary(length: int, separator: str) -> None:
    """The last element ends at each character near the end of the first part."""
    low = 1_000_000
    width = len(f"{low}{separator}{low}") + 1
    count, rest = divmod(length, width)
    words = [f"{low + 4 * n}{separator}{low + 4 * n + 2}" for n in range(count)]
    text = ("0," if rest == 1 else f"{'123456789'[: rest - 1]}," if rest > 1 else "") + ",".join(words)
    text = text.replace("123456789", "12") if rest > 10 else text
    ids = IdSet(text)
    assert str(ids) == text
    assert str(IdSet(f"[{text}]")) == text
    last = ids.max()
    assert str(IdSet(f"{text},{last + 2}")) == f"{text},{last + 2}"
    for more, problem in [
        ("", "an empty element"),
        (f"{last}", f"an id that is not above {last}"),
        ("0", "an id that"),
    ]:
        with pytest.raises(IdSetError, match=f"^not an idset: {problem}.* at character {len(text) + 2} "):
            IdSet(f"{text},{more}")


def test_a_long_text_takes_little_memory_beside_it() -> None:
    text = ",".join(LONG["mixed"])
    tracemalloc.start()
    try:
        IdSet(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_500_000  # parsed all at once it takes seven million


def test_one_element_longer_than_a_part_is_an_error() -> None:
    with pytest.raises(IdSetError, match="an id above 4294967294 at character 3 "):
        IdSet("1," + "9" * (2 * PART))
    with pytest.raises(IdSetError, match=r"an unexpected 'x' at character 3 \('x{20}\.\.\.'\)"):
        IdSet("1," + "x" * (2 * PART))


# -- cost follows runs, not ids --


@pytest.mark.requirement("PR-50")
def test_four_billion_ids_are_small_and_quick() -> None:
    begin = time.process_time()
    ids = IdSet("0-4000000000")
    assert str(ids) == "0-4000000000"
    assert len(ids) == 4_000_000_001
    assert len(pickle.dumps(ids)) < 200
    assert str(ids - IdSet("7")) == "0-6,8-4000000000"
    assert str(ids & IdSet("3999999999,4000000001")) == "3999999999"
    assert (ids.nth(4_000_000_000), ids.index(4_000_000_000)) == (4_000_000_000, 4_000_000_000)
    assert hash(ids) == hash(IdSet("0-4000000000"))
    assert ids < ALL_RANKS
    assert not ids.isdisjoint(IdSet("4000000000"))
    assert time.process_time() - begin < 0.5


def test_a_range_is_not_spelled_out() -> None:
    assert str(IdSet(range(4_000_000_001))) == "0-4000000000"


def test_all_ranks_is_every_id() -> None:
    assert str(ALL_RANKS) == f"0-{MAX_ID}"
    assert len(ALL_RANKS) == MAX_ID + 1
    assert list(ALL_RANKS.runs()) == [(0, MAX_ID)]
    assert list((ALL_RANKS - IdSet(f"1,{MAX_ID - 1}")).runs()) == [(0, 0), (2, MAX_ID - 2), (MAX_ID, MAX_ID)]


@pytest.mark.requirement("PR-50")
def test_long_texts_take_time_in_proportion() -> None:
    text = ",".join(LONG["mixed"] + [f"{id_}" for id_ in range(1_000_000, 2_000_000, 2)])
    begin = time.process_time()
    assert str(IdSet(text)) == text
    assert time.process_time() - begin < 2
