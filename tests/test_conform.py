"""conform passes who does what the specification says, and finds who does not, with few events: Python, C, anything."""

import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from partialrelease import Code, Holder, HolderKind, IdSet, Job, Phase
from partialrelease.cli import cli
from partialrelease.conform import Difference, Driver, NoAnswerError, Process, check_generated, check_vectors
from partialrelease.implementation import Implementation
from partialrelease.job import evolved
from partialrelease.protocol import Answer, Queued, Request, answer_line
from partialrelease.vectors import read_vectors

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "conformance"
VECTORS = read_vectors()
PYTHON = [sys.executable, "-m", "partialrelease.implementation"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["conform", *arguments], standalone_mode=False)


# -- implementations within this process --


def test_the_package_conforms() -> None:
    driver = Driver(Implementation())
    assert check_vectors(driver, VECTORS).smallest is None
    asked = driver.asked
    assert check_generated(driver, 30, 1).smallest is None
    assert driver.asked > asked + 1000
    assert driver.not_compared == []


class Wrong(Implementation):
    """With a mistake: ``change`` is what it makes of the job after each event."""

    def __init__(self, change: Callable[[Job, Job], Job]) -> None:
        super().__init__()
        self.change = change

    def answer(self, request: Request) -> Answer:
        before = self.job
        answer = super().answer(request)
        if answer.code is None and not isinstance(request, Queued):
            self.job = self.change(before, self.job)
        return answer


def forgets_exec(before: Job, job: Job) -> Job:
    """``finish`` ends the exec system."""
    return evolved(job, exec=job.exec.DONE, exec_ranks=IdSet()) if job.exec is job.exec.FINISHED else job


def cleans_early(before: Job, job: Job) -> Job:
    """``free`` is the end."""
    return evolved(job, phase=Phase.INACTIVE) if job.closed else job


def holds_on(before: Job, job: Job) -> Job:
    """A ``partial-free`` leaves an epilog its references."""
    if before.held == job.held or not before.actions or len(before.actions) != len(job.actions):
        return job
    return evolved(job, actions=tuple(Holder(HolderKind.EPILOG, a.description, before.held) for a in job.actions))


@pytest.mark.parametrize("change", [forgets_exec, cleans_early, holds_on])
def test_a_mistake_is_found_with_few_events(change: Callable[[Job, Job], Job]) -> None:
    found = check_vectors(Driver(Wrong(change)), VECTORS)
    assert found.smallest is not None
    assert len(found.smallest.events) <= 8
    _none_can_be_left_out(lambda: Driver(Wrong(change)), found.smallest)


def test_a_mistake_is_found_by_what_is_made_up() -> None:
    found = check_generated(Driver(Wrong(cleans_early)), 200, 0)
    assert found.smallest is not None
    assert len(found.smallest.events) <= 8
    _none_can_be_left_out(lambda: Driver(Wrong(cleans_early)), found.smallest)


def _none_can_be_left_out(driver: Callable[[], Driver], difference: Difference) -> None:
    from partialrelease.conform import expected

    requests = [request for request, _ in difference.exchanges]
    assert driver().follow(expected(requests)) is not None
    for left_out in range(1, len(requests)):
        assert driver().follow(expected(requests[:left_out] + requests[left_out + 1 :])) is None


class Says(Implementation):
    """Answers, with a change of its lines."""

    def __init__(self, change: Callable[[str], str]) -> None:
        super().__init__()
        self.change = change

    def ask(self, line: str) -> str:
        return self.change(super().ask(line))


def without(*names: str) -> Callable[[str], str]:
    return lambda line: "\t".join(field for field in line.split("\t") if field.partition("=")[0] not in names)


def no_codes(line: str) -> str:
    return "violation" if line.startswith("violation") else line


@pytest.mark.parametrize(
    ("change", "left_out"),
    [
        (without("post"), ["post"]),
        (without("referenced", "releasable"), ["referenced", "releasable"]),
        (no_codes, ["the violation's code"]),
        (lambda line: line.replace("held=", "x=y\theld="), []),
    ],
)
def test_what_may_be_left_out_is_not_compared(change: Callable[[str], str], left_out: list[str]) -> None:
    driver = Driver(Says(change))
    assert check_vectors(driver, VECTORS[:200]).smallest is None
    assert driver.not_compared == left_out


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (without("held"), "says garbage: 'held' is missing"),
        (without("phase"), "says garbage: 'phase' is missing"),
        (lambda line: without("post")(line) if "RUN" in line else line, "says 'post' in some answers only"),
        (lambda line: no_codes(line) if "WrongPhase" in line else line, "says the code of some violations only"),
        (lambda line: line.replace("NotHeld", "GateClosed"), "another violation"),
        (lambda line: line.replace("releasable=0", "releasable=1"), "differs in releasable"),
        (lambda line: line.replace("post=partial-free 1-3", "post="), "differs in post"),
        (lambda line: line.replace("post=partial-free 1-3", "post=free"), "differs in post"),
        (lambda line: line.replace("CLEANUP", "RUN"), "differs in phase"),
        (lambda line: f" {line}", "says garbage: an answer begins with 'ok'"),
        (lambda line: "ok" + line[9:] if line.startswith("violation") else line, "says garbage: "),
        (lambda line: "violation\tNotHeld" if "INACTIVE" in line else line, "refuses an event that may happen"),
        (
            lambda line: answer_line(Implementation().answer(Queued())) if "violation" in line else line,
            "takes an event",
        ),
    ],
)
def test_what_must_be_said_is_compared(change: Callable[[str], str], why: str) -> None:
    found = check_vectors(Driver(Says(change)), VECTORS).smallest
    assert found is not None
    assert found.why.startswith(why)


def test_who_does_not_answer_the_same_twice_is_found_out() -> None:
    asked = 0

    def sometimes(line: str) -> str:
        nonlocal asked
        asked += line.startswith("ok")
        return line.replace("phase=", "phase=X") if asked == 300 else line

    found = check_generated(Driver(Says(sometimes)), 100, 0)
    assert found.smallest is not None
    assert found.smallest.why == "differs in phase"


# -- processes --

SCRIPT = """
import os, sys, time
from partialrelease.implementation import Implementation
job = Implementation()
n = 0
for line in sys.stdin:
    n += 1
    answer = job.ask(line.rstrip("\\n"))
    if "description=" in line:
        {fault}
    print(answer, flush=True)
"""
FAULTS = {
    "os.abort()": "was ended by SIGABRT",
    "print('help!', file=sys.stderr); 1 / 0": "ended with status 1",
    "os.close(1); time.sleep(9)": "closed its standard output",
    "time.sleep(9)": "did not answer within 1 s",
    "answer += chr(10) + answer": "said more than one line",
    "answer = 'x' * 70000; sys.stdout.write(answer); continue": "said more than 65536 bytes without an end of line",
    "sys.stdout.buffer.write(bytes([255, 10])); sys.stdout.flush(); continue": "said what is not UTF-8",
    "answer = ''": "says garbage",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_answer_is_a_difference_and_no_traceback(fault: str) -> None:
    script = SCRIPT.replace("{fault}", fault)
    began = time.monotonic()
    done = run("--timeout", "1", "--examples", "0", "--", sys.executable, "-c", script)
    assert (done.return_value, done.exception, done.stderr) == (1, None, "")
    assert f"DIFFERS: it {FAULTS[fault]}" in done.stdout
    if "help" in fault:
        assert done.stdout.splitlines()[-1].strip() == "ZeroDivisionError: division by zero"
    # What it takes is an event with a description, after what may come before one.
    (events,) = [line for line in done.stdout.splitlines() if line.startswith("The smallest sequence found (")]
    assert int(events.partition("(")[2].split()[0]) <= 2
    assert time.monotonic() - began < 40


def test_to_be_slow_for_once_is_no_difference_of_a_smaller_sequence(tmp_path: Path) -> None:
    """The first time there is no answer; then they come late, and still in time."""
    fault = (
        f"time.sleep(0.6 if os.path.exists({str(tmp_path / 'x')!r}) else (open({str(tmp_path / 'x')!r}, 'w'), 9)[1])"
    )
    done = run("--timeout", "1", "--examples", "0", "--", sys.executable, "-c", SCRIPT.replace("{fault}", fault))
    (events,) = [line for line in done.stdout.splitlines() if line.startswith("The smallest sequence found (")]
    assert int(events.partition("(")[2].split()[0]) > 2
    assert "DIFFERS: it did not answer within 1 s" in done.stdout


def test_what_is_written_on_standard_error_is_no_matter(capfd: pytest.CaptureFixture[str]) -> None:
    script = SCRIPT.replace('if "description=" in line:', "if True:").replace("{fault}", "sys.stderr.write('x' * 5000)")
    with Process([sys.executable, "-c", script], 5) as process:
        assert check_vectors(Driver(process), VECTORS[:40]).smallest is None
        assert 0 < len(process.noise) <= 4096
    assert capfd.readouterr().err == ""


def test_no_process_is_left(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    begin = f"""
import fcntl, subprocess
lock = open({str(lock)!r}, "a")
fcntl.flock(lock, fcntl.LOCK_SH)  # the child has it too, for as long as it lives
subprocess.Popen(["sleep", "60"], pass_fds=[lock.fileno()])
"""
    script = begin + SCRIPT.replace("{fault}", "time.sleep(9)")
    done = run("--timeout", "0.3", "--examples", "0", "--", sys.executable, "-c", script)
    assert done.return_value == 1
    until = time.monotonic() + 10  # it is killed, which may take a moment
    with lock.open() as file:
        while True:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                assert time.monotonic() < until
                time.sleep(0.01)


def test_an_implementation_that_does_not_end_is_ended() -> None:
    script = "import sys, time\nfor line in sys.stdin: print('ok', flush=True)\ntime.sleep(60)"
    began = time.monotonic()
    with Process([sys.executable, "-c", script], 5) as process:
        assert process.ask("reset") == "ok"
        assert process._process is not None
        pid = process._process.pid
    assert time.monotonic() - began < 5
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_after_no_answer_it_is_started_again() -> None:
    with Process([sys.executable, "-c", "print(input())"], 5) as process:
        assert process.ask("a") == "a"
        with pytest.raises(NoAnswerError, match="ended with status 0"):
            process.ask("b")
        assert process.ask("c") == "c"


# -- the command --


@pytest.mark.slow
def test_the_command_passes_the_package_itself() -> None:
    done = run("--examples", "10", "--", *PYTHON)
    assert (done.return_value, done.stderr) == (0, "")
    vectors, made_up, last = done.stdout.splitlines()
    requests = sum(len(vector.exchanges) for vector in VECTORS)
    assert vectors == f"vectors: {len(VECTORS)} sequences, {requests} requests: all as expected"
    assert made_up.startswith("made up: 10 sequences, ")
    assert last == "CONFORMS."


def test_the_command_shows_and_saves_what_differs(tmp_path: Path) -> None:
    name = str(tmp_path / "found")
    command = [sys.executable, str(HERE / "counts_finishes.py")]
    done = run("--save", name, "--", *command)
    assert (done.return_value, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[1] == "DIFFERS: it takes an event that must be refused"
    assert "       expected: violation  UnknownHolder" in lines
    assert lines[-1] == f"`partialrelease explain {name}.eventlog` shows what should be."
    explained = CliRunner().invoke(cli, ["explain", f"{name}.eventlog"], standalone_mode=False)
    assert "UnknownHolder" in explained.stdout

    as_json = run("--format", "json", "--", *command)
    found = json.loads(as_json.stdout)
    assert (as_json.return_value, found["conforms"], found["not_compared"]) == (1, False, [])
    assert found["difference"]["expected"] == "violation\tUnknownHolder"
    assert found["difference"]["answered"].startswith("ok\t")
    assert len(found["difference"]["requests"]) <= 6
    assert found["difference"]["requests"][0].startswith("reset\tlast_rank=")


def test_what_is_saved_without_a_beginning_is_not_for_explain(tmp_path: Path) -> None:
    done = run("--examples", "0", "--save", f"{tmp_path}/x", "--", "false")
    assert (done.return_value, done.stderr) == (1, "")
    assert done.stdout.endswith(f"\n{tmp_path}/x.eventlog has its events.\n")


def test_what_cannot_be_saved_is_said(tmp_path: Path) -> None:
    done = run("--examples", "0", "--save", f"{tmp_path}/none/x", "--", "false")
    assert done.return_value == 2
    assert done.stderr == f"error: {tmp_path}/none/x.eventlog: No such file or directory\n"
    assert "DIFFERS: it ended with status 1" in done.stdout  # it may have taken long to find


def test_to_ask_nothing_is_not_to_conform() -> None:
    assert str(run("--no-vectors", "--examples", "0", "--", "true").exception).endswith("asks nothing")


@pytest.mark.parametrize(
    ("command", "why"),
    [("./none", "./none: cannot be run: No such file"), ("/", "/: cannot be run: Permission denied")],
)
def test_what_cannot_be_started_is_said(command: str, why: str) -> None:
    done = run("--", command)
    assert done.return_value == 2
    assert done.stderr.startswith(f"error: {why}")


def test_without_a_command_it_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    done = run()
    assert "COMMAND is missing, after --" in str(done.exception)


def test_without_hypothesis_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "partialrelease.strategies", raising=False)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    done = run("--", *PYTHON)
    assert done.return_value == 2
    assert "pip install 'partialrelease[hypothesis]', or ask only the vectors: --examples 0" in done.stderr
    assert run("--examples", "0", "--", *PYTHON).return_value == 0


def test_nothing_is_left_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYPOTHESIS_STORAGE_DIRECTORY", raising=False)
    done = subprocess.run(
        [sys.executable, "-m", "partialrelease", "conform", "--no-vectors", "--examples", "3", "--", *PYTHON],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_the_vectors_are() -> None:
    done = run("--vectors-info")
    assert done.return_value == 0
    first, *table, last = done.stdout.splitlines()
    assert f"{len(VECTORS)} vectors, " in first
    assert any("partial-free" in row and "LastRankFreed" in row for row in table)
    assert last.startswith("posted next: clean ")
    found = json.loads(run("--vectors-info", "--format", "json").stdout)
    assert found["vectors"] == len(VECTORS)
    assert found["events"]["scheduler-restart"]["refused"][Code.ResourcesLost] > 0


def test_missing_vectors_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("partialrelease.vectors.INDEX", "none.json")
    done = run("--", *PYTHON)
    assert done.return_value == 2
    assert "the conformance vectors are missing: install partialrelease again" in done.stderr


# -- the implementation in C --

BROKEN = {1: "counts finishes", 2: "no release gate", 3: '"all" is all that was allocated'}


@pytest.fixture(scope="module")
def compiler() -> list[str]:
    if found := shutil.which("cc"):
        return [found]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    pytest.skip("no C compiler: neither cc nor the package ziglang (extra [cc])")


@pytest.fixture(scope="module")
def build(compiler: list[str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], str]:
    folder = tmp_path_factory.mktemp("c")

    def build(broken: int) -> str:
        program = folder / f"partialrelease-{broken}"
        settings = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", f"-DBROKEN={broken}"]
        source = str(HERE / "partialrelease.c")
        subprocess.run([*compiler, *settings, "-o", str(program), source], check=True, timeout=120)
        return str(program)

    return build


@pytest.mark.slow
def test_the_implementation_in_c_conforms(build: Callable[[int], str]) -> None:
    began = time.monotonic()
    done = run("--", build(0))
    assert (done.return_value, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "CONFORMS."
    assert "not compared" not in done.stdout
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("broken", BROKEN)
def test_a_mistake_in_c_is_found_with_few_events(broken: int, vectors: bool, build: Callable[[int], str]) -> None:
    with Process([build(broken)], 5) as process:
        driver = Driver(process)
        found = check_vectors(driver, VECTORS) if vectors else check_generated(driver, 500, 0)
        assert found.smallest is not None
        assert len(found.smallest.events) <= 10
        _none_can_be_left_out(lambda: Driver(process), found.smallest)
