"""The conformance vectors (spec/vectors), read: what an implementation is asked, and what it must answer."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from .events import Event, Malformed, make_event
from .idset import ALL_RANKS, IdSet
from .job import Code, LastRank
from .protocol import SETS, Answer, Queued, Request, Reset

__all__ = ["INDEX", "Coverage", "Vector", "VectorsError", "coverage", "read_vectors", "vectors_folder"]

INDEX: Final = "index.json"
_FORMAT: Final = 1


class VectorsError(Exception):
    """The vectors are missing, or not what the index says."""


@frozen
class Vector:
    """One job. ``exchanges``: what is asked in turn, beginning with :class:`Reset`, and what must be answered.

    ``name``: the file, and the vector's number in it. ``origin``: what the file is made of.
    """

    name: str
    origin: str
    exchanges: tuple[tuple[Request, Answer], ...]


def vectors_folder() -> Path:
    """The folder of the vectors: ``spec/vectors/`` of a checkout, or where the wheel has them."""
    package = Path(__file__).resolve().parent
    for folder in (package / "spec" / "vectors", package.parent / "spec" / "vectors"):
        if (folder / INDEX).is_file():
            return folder
    raise VectorsError(f"{folder}: the conformance vectors are missing: install partialrelease again")


def read_vectors(folder: Path | None = None) -> list[Vector]:
    """All vectors. Raises :class:`VectorsError`."""
    folder = folder or vectors_folder()
    try:
        index = json.loads((folder / INDEX).read_bytes())
        if index["format"] != _FORMAT:
            raise VectorsError(f"{folder / INDEX}: format {index['format']}: only format {_FORMAT} is known")
        vectors: list[Vector] = []
        for name, entry in index["files"].items():
            data = (folder / name).read_bytes()
            if hashlib.sha256(data).hexdigest() != entry["sha256"]:
                raise VectorsError(f"{folder / name}: not the file that {INDEX} has the checksum of")
            vectors += _read_file(name.removesuffix(".json"), json.loads(data))
    except OSError as error:
        raise VectorsError(f"{error.filename}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise VectorsError(f"{folder}: not vectors: {error!r}") from None
    return vectors


def _read_file(name: str, file: dict[str, Any]) -> Iterator[Vector]:
    requests = [_read_request(request) for request in file["requests"]]
    states = [_read_state(state) for state in file["states"]]
    for number, vector in enumerate(file["vectors"], 1):
        last_rank = LastRank(vector["last_rank"])
        exchanges: list[tuple[Request, Answer]] = [(Reset(last_rank), states[vector["initial"]])]
        for asked, answered in vector["steps"]:
            answer = _refusal(answered) if isinstance(answered, str) else states[answered]
            exchanges += [(requests[n], answer) for n in (asked if isinstance(asked, list) else [asked])]
        yield Vector(vector.get("name", f"{name} {number}"), file["origin"], tuple(exchanges))


def _read_request(request: dict[str, Any]) -> Request:
    if "queued" in request:
        return Queued(tuple(request["queued"]))
    ranks = IdSet(request["R"]) if "R" in request else ALL_RANKS
    return make_event(request["name"], request.get("context"), ranks)


def _read_state(state: dict[str, Any]) -> Answer:
    post = state["post"]
    sets: dict[str, Any] = {name: IdSet(state[name]) for name in SETS}
    return Answer(
        frozenset({"phase", "post", *SETS}),
        phase=state["phase"],
        **sets,
        post=post and (post["name"], IdSet(post.get("context", {}).get("ranks", ""))),
    )


@cache
def _refusal(code: str) -> Answer:
    return Answer(frozenset({"code"}), Code(code).value)


@frozen
class Coverage:
    """What the vectors exercise.

    ``taken``: how often each event happens, by name. ``refused``: how often each is refused, by name and code.
    ``states``: in how many states something is asked, as far as they can be told apart from without.
    """

    vectors: int
    exchanges: int
    states: int
    taken: dict[str, int]
    refused: dict[tuple[str, str], int]
    posts: dict[str, int]


def coverage(vectors: list[Vector]) -> Coverage:
    """What the vectors exercise."""
    taken: Counter[str] = Counter()
    refused: Counter[tuple[str, str]] = Counter()
    posts: Counter[str] = Counter()
    states = set()
    for vector in vectors:
        for request, answer in vector.exchanges:
            if answer.code is None:
                states.add(answer)
                posts[answer.post[0] if answer.post else "nothing"] += 1
            if isinstance(request, Event):
                name = _kind(request)
                if answer.code is None:
                    taken[name] += 1
                else:
                    refused[name, answer.code] += 1
            elif isinstance(request, Queued):
                taken["(queued)"] += 1
    exchanges = sum(len(vector.exchanges) for vector in vectors)
    return Coverage(len(vectors), exchanges, len(states), dict(taken), dict(refused), dict(posts))


def _kind(event: Event) -> str:
    """The event's name, and what else tells which rule it goes by."""
    meant = event.meant if isinstance(event, Malformed) and event.meant is not None else event
    name = event.name
    if name == "release":
        return "release of an epilog" if getattr(meant, "description", None) is not None else "release"
    if name == "exception" and getattr(meant, "severity", 1) == 0:
        return "scheduler-restart" if getattr(meant, "type", "") == "scheduler-restart" else "fatal exception"
    return name
