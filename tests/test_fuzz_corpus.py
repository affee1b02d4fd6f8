"""What fuzzing begins with, and what it once found, is given to the readers again: none breaks a promise."""

from pathlib import Path

import pytest
from targets import SLOW, TARGETS, lengthened, seconds

CORPUS = Path(__file__).parent / "fuzz" / "corpus"
INPUTS = sorted(path.relative_to(CORPUS) for path in CORPUS.glob("*/*"))


def test_every_reader_has_inputs_and_they_are_small() -> None:
    assert {path.parts[0] for path in INPUTS} == set(TARGETS)
    assert sum((CORPUS / path).stat().st_size for path in INPUTS) < 300_000


@pytest.mark.parametrize("path", INPUTS, ids=str)
def test_an_input_breaks_no_promise(path: Path) -> None:
    target = TARGETS[path.parts[0]]
    data = (CORPUS / path).read_bytes()
    target.look(data)
    assert seconds(target, lengthened(data)) < SLOW
