"""The command line: what it prints, its exit status, and that nothing ends in a traceback."""

import contextlib
import gzip
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data"
LOGS = DATA / "eventlogs"
JOURNAL = DATA / "journal-1024-ranks.ndjson"

Run = Callable[..., tuple[int, str, str]]


def log(name: str) -> Path:
    return LOGS / f"{name}.eventlog"


# -- check --


def test_check_of_a_clean_log_says_so_in_one_line(run: Run) -> None:
    assert run("check", log("plain")) == (
        0,
        f"{log('plain')}: INACTIVE after 10 events; ranks 0-3 (vm,vm,vm,vm) released; ok\n",
        "",
    )


def test_check_shows_each_violation_with_place_time_ranks_hosts_holders_and_meaning(run: Run) -> None:
    status, out, _ = run("check", log("unmatched-finish"))
    assert status == 1
    assert "3 VIOLATIONS" in out
    freed = out[out.index("ReleasedWhileReferenced") - 200 : out.index("clean:")]
    for part in (
        f"{log('unmatched-finish')}:11: +0.460s (2026-12-01 14:18:43.036 UTC): free: ReleasedWhileReferenced",
        "ranks 0-1 (vm,vm)",
        "holder: epilog 'a' (ranks 0-1, since +0.121s)",
        "These nodes could go to another job",
    ):
        assert part in freed


def test_check_of_many_files_sums_up(run: Run) -> None:
    status, out, _ = run("check", *sorted(LOGS.glob("*.eventlog")), *sorted(LOGS.glob("*.txt")))
    assert status == 1
    assert out.endswith("19 jobs, 236 events: 5 violations in 3 jobs\n")


def test_check_of_the_journal_is_clean_and_a_line_a_job(run: Run) -> None:
    status, out, _ = run("check", JOURNAL)
    assert status == 0
    assert len(out.splitlines()) == 501
    assert out.endswith("500 jobs, 6605 events: no violations\n")
    assert "job 38436601856: INACTIVE after 11 events; rank 0 (node0) released; ok" in out


@pytest.mark.slow
def test_check_counts_jobs_that_began_before_the_journal(run: Run) -> None:
    lines = JOURNAL.read_bytes().splitlines(keepends=True)[3000:]
    status, out, _ = run("check", "-", stdin=b"".join(lines))
    assert status == 0
    assert re.search(r"no violations; [0-9]+ of the jobs began before the log\n$", out)
    assert "<stdin> job" in out


def test_check_prints_json_as_specified(run: Run) -> None:
    status, out, _ = run("check", "--format", "json", log("unmatched-finish"), log("plain"))
    assert status == 1
    first, second = map(json.loads, out.splitlines())
    assert list(first) == [
        "source", "job", "phase", "events", "allocated", "held", "released", "holders", "violations",
    ]  # fmt: skip
    holder: dict[str, Any] = {"kind": "epilog", "description": "a", "ranks": "0-1", "since": 1796134722.697386}
    assert first["violations"][1] == {
        "line": 11,
        "timestamp": 1796134723.0362864,
        "event": "free",
        "code": "ReleasedWhileReferenced",
        "ranks": "0-1",
        "holders": [holder],
        "message": "ranks 0-1 handed over while still referenced by epilog 'a'",
    }
    assert [violation["code"] for violation in first["violations"]] == [
        "UnknownHolder", "ReleasedWhileReferenced", "CleanWhileHeld",
    ]  # fmt: skip
    assert first["holders"] == [{**holder, "ranks": ""}]
    assert second == {
        "source": str(log("plain")),
        "job": None,
        "phase": "INACTIVE",
        "events": 10,
        "allocated": "0-3",
        "held": "",
        "released": "0-3",
        "holders": [],
        "violations": [],
    }


def test_json_of_a_running_job_names_the_exec_system(run: Run) -> None:
    lines = log("plain").read_bytes().splitlines(keepends=True)[:6]
    _, out, _ = run("check", "--format", "json", stdin=b"".join(lines))
    assert json.loads(out)["holders"] == [
        {"kind": "exec", "description": None, "ranks": "0-3", "since": 1796134711.5737374}
    ]


def test_unknown_ranks_are_said_to_be_unknown(run: Run) -> None:
    text = re.sub(rb',"context":\{"annotations".*\}\}\}\}', b"}", log("plain").read_bytes())
    status, out, _ = run("check", "-", stdin=text)
    assert (status, out) == (
        0,
        "<stdin>: INACTIVE after 10 events; all ranks (which ones is not known: no R) released; ok\n",
    )
    _, out, _ = run("check", "--format", "json", "-", stdin=text)
    assert (json.loads(out)["allocated"], json.loads(out)["held"]) == (None, "")


def test_r_can_be_given(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy.eventlog"
    copy.write_bytes(log("plain").read_bytes())
    r = tmp_path / "r.json"
    r.write_text('{"version":1,"execution":{"R_lite":[{"rank":"8-11"}],"nodelist":["rabbit[8-11]"]}}')
    assert "ranks 8-11 (rabbit[8-11]) released" in run("check", "--R", r, copy)[1]
    assert run("check", "--R", r, copy, copy)[0] == 2
    status, _, err = run("check", "--R", r, JOURNAL)
    assert (status, "a journal of many" in err) == (2, True)


def test_the_last_rank_setting_is_an_option(run: Run) -> None:
    lines = log("ranks-keys").read_text().splitlines(keepends=True)
    del lines[8]
    lines.insert(9, '{"timestamp":1796134714.0,"name":"partial-free","context":{"ranks":"0-3"}}\n')
    text = "".join(lines).replace('"description":"flush"', '"description":"dws-epilog"', 0).encode()
    found = {
        setting: [
            v["code"]
            for v in json.loads(run("check", "--format=json", "--last-rank", setting, stdin=text)[1])["violations"]
        ]
        for setting in ("keep", "defer", "with-last")
    }
    assert found == {
        "keep": ["LastRankFreed", "UnknownHolder"],
        "defer": ["UnknownHolder"],
        "with-last": ["UnknownHolder"],
    }


def test_fragments_need_the_option(run: Run) -> None:
    fragment = b"".join(log("unmatched-finish").read_bytes().splitlines(keepends=True)[5:])
    status, out, err = run("check", stdin=fragment)
    assert (status, out) == (2, "")
    assert err == (
        "error: <stdin>:1: begins with 'start', not with 'submit': it seems to be a fragment of a log; "
        "--fragment checks what can be checked of it\n"
    )
    status, out, _ = run("check", "--fragment", stdin=fragment)
    assert status == 1
    assert "UnknownHolder" in out
    assert "fragment: what came before is not known" in out


def test_a_log_still_being_written_is_checked_with_a_warning(run: Run) -> None:
    status, out, err = run("check", stdin=log("plain").read_bytes()[:-9])
    assert (status, "ok" in out) == (0, True)
    assert err == "warning: <stdin>:10: the last line is cut short (a log still being written?) and was left out\n"


BAD: dict[str, bytes] = {
    "binary": bytes(range(256)) * 9,
    "empty": b"",
    "not an entry": b'{"foo":1}\n',
    "string timestamp": b'{"timestamp":"1","name":"submit"}\n',
    "NaN": b'{"timestamp":NaN,"name":"submit"}\n',
    "ten million ids": b'{"timestamp":1,"name":"release","context":{"ranks":"'
    + b",".join(b"%d" % rank for rank in range(0, 20_000_000, 2))
    + b'"}}\n',
    "nest": b"[" * 200 + b"]" * 200 + b"\n",
    "nest in a context": b'{"timestamp":1,"name":"submit","context":' + b'{"a":' * 200 + b"1" + b"}" * 201 + b"\n",
    "invalid UTF-8": b'{"timestamp":1,"name":"submit","context":{"a":"\xff\xfe"}}\n',
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("command", ["check", "explain"])
def test_bad_input_is_one_line_and_exit_status_2(run: Run, tmp_path: Path, command: str, what: str) -> None:
    file = tmp_path / "job.eventlog"
    file.write_bytes(BAD[what])
    status, out, err = run(command, file)
    assert (status, out) == (2, "")
    assert re.fullmatch(r"error: \S+job\.eventlog(:1)?: [^\n]+\n", err)
    assert len(err) < 500


@pytest.mark.parametrize(
    ("r", "message"),
    [
        (b'{"version":1,"execution":{"R_lite":[{"rank":"","children":{"core":"0"}}],"nodelist":[]}}', "no ranks"),
        (b'{"version":1,"execution":{"R_lite":[{"rank":"0-3"}],"nodelist":["n[0-999999999]"]}}', "1000000000 hosts"),
    ],
)
def test_a_bad_r_is_one_line_and_exit_status_2(run: Run, tmp_path: Path, r: bytes, message: str) -> None:
    (tmp_path / "job.eventlog").write_bytes(log("plain").read_bytes())
    (tmp_path / "job.R").write_bytes(r)
    status, out, err = run("check", tmp_path / "job.eventlog")
    assert (status, out) == (2, "")
    assert re.fullmatch(rf"error: \S+job\.R: not an R [^\n]*{message}[^\n]*\n", err)


def test_a_bad_nodelist_in_a_journal_is_said_and_the_rest_is_reported(run: Run) -> None:
    lines = JOURNAL.read_bytes().splitlines(keepends=True)[:7]
    status, out, err = run("check", stdin=b"".join(lines).replace(b'["node0"]', b'["node[0-1]"]'))
    assert status == 2
    assert "error: <stdin>: job 38436601856: not an R (RFC 20): 2 hosts for 1 ranks" in err
    assert "RUN after 7 events; holds rank 0, referenced by the exec system; ok" in out
    status, out, err = run("explain", "-", stdin=b"".join(lines).replace(b'["node0"]', b'["node[0-1]"]'))
    assert (status, "2 hosts for 1 ranks" in err, "RUN: rank 0 held.\n" in out) == (2, True, True)


def test_what_was_read_before_a_bad_line_is_reported_all_the_same(run: Run) -> None:
    text = log("unmatched-finish").read_bytes() + b"nonsense\n"
    status, out, err = run("check", "-", log("plain"), stdin=text)
    assert status == 2
    assert "ReleasedWhileReferenced" in out
    assert f"{log('plain')}: INACTIVE" in out
    assert "<stdin>:13: not an eventlog entry" in err
    lines = log("plain").read_bytes().splitlines(keepends=True)[:6]
    _, out, _ = run("check", "-", stdin=b"".join(lines) + b"nonsense\n")
    assert "its log was not read to the end" in out


def test_a_missing_file_and_wrong_usage(run: Run, tmp_path: Path) -> None:
    status, _, err = run("check", tmp_path / "missing")
    assert (status, err) == (2, f"error: {tmp_path / 'missing'}: cannot be read: No such file or directory\n")
    assert run("check", "--format", "xml", log("plain"))[0] == 2
    assert run("explode")[0] == 2
    assert run("explain")[0] == 2
    assert run("--help")[0] == 0
    assert run("check", "--help")[0] == 0
    assert run("--version")[1].startswith("partialrelease, version ")


def test_compressed_files_are_checked_as_they_are(run: Run, tmp_path: Path) -> None:
    packed = tmp_path / "unmatched-finish.eventlog.gz"
    packed.write_bytes(gzip.compress(log("unmatched-finish").read_bytes()))
    (tmp_path / "unmatched-finish.R").write_bytes((LOGS / "unmatched-finish.R").read_bytes())
    status, out, _ = run("check", packed)
    assert (status, "ranks 0-1 (vm,vm)" in out) == (1, True)


# -- explain --


def test_explain_shows_every_event_and_who_holds_the_rest(run: Run) -> None:
    lines = log("A-proposed").read_bytes().splitlines(keepends=True)[:11]
    status, out, _ = run("explain", "-", stdin=b"".join(lines))
    assert status == 0
    row = next(line for line in out.splitlines() if "partial-free" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == [
        "+0.869", "partial-free 0,2", "CLEANUP", "1,3", "dws-epilog: 1,3", "", "0,2",
    ]  # fmt: skip
    assert out.endswith(
        "CLEANUP: ranks 1,3 held.\n"
        "  epilog 'dws-epilog' (ranks 1,3, since +0.224s): dropped by `epilog-finish description='dws-epilog'`, "
        "or part by part by `release ranks=... description='dws-epilog'`.\n"
    )


def test_explain_marks_violations(run: Run) -> None:
    status, out, _ = run("explain", log("unmatched-finish"))
    assert status == 1
    assert "UnknownHolder: epilog 'b' finishes" in out
    assert "ReleasedWhileReferenced: ranks 0-1 handed over" in out


@pytest.mark.parametrize(
    ("name", "lines", "end"),
    [
        ("cancel-pending", 6, "CLEANUP: nothing is allocated.\n"),
        (
            "plain",
            5,
            "`finish` and `release final=true`.\n  ranks 0-3: not referenced, but the release gate is closed: the job",
        ),
        (
            "plain",
            6,
            "the exec system (ranks 0-3, since +0.061s): dropped by `finish`, and then `release final=true`.\n",
        ),
        ("plain", 7, "the exec system (ranks 0-3, since +0.061s): dropped by `release final=true`.\n"),
        ("plain", 8, "the job manager posts next: `free`.\n"),
        ("plain", 10, "INACTIVE: no rank is held; ranks 0-3 (vm,vm,vm,vm) handed over.\n"),
        ("C-perilog", 6, "dropped by `prolog-finish description='job-manager.prolog'`.\n"),
        ("ranks-keys", 11, "the job manager posts next: `partial-free 1-3`.\n"),
    ],
)
def test_explain_says_what_would_release_what_is_held(run: Run, name: str, lines: int, end: str) -> None:
    text = b"".join(log(name).read_bytes().splitlines(keepends=True)[:lines])
    with_r = ["--R", LOGS / f"{name}.R"] if (LOGS / f"{name}.R").exists() else []
    status, out, _ = run("explain", *with_r, "-", stdin=text)
    assert status == 0
    assert end in out


def test_explain_says_that_the_last_rank_stays(run: Run) -> None:
    lines = log("ranks-keys").read_text().splitlines(keepends=True)[:11]
    lines.append('{"timestamp":1796134714.5,"name":"partial-free","context":{"ranks":"1-3"}}\n')
    _, out, _ = run("explain", "-", stdin="".join(lines).encode())
    waits = (
        "  rank 0: not referenced, but the last one stays (last_rank=keep) until `free`, which waits for:\n"
        "  epilog 'dws-epilog' (no ranks, since +0.216s): dropped by `epilog-finish description='dws-epilog'`.\n"
    )
    assert out.endswith(waits)
    _, out, _ = run("explain", "--rank", "0", "-", stdin="".join(lines).encode())
    assert out.endswith("rank 0: held, and referenced by nobody.\n" + waits)


def test_explain_narrows_to_a_rank(run: Run) -> None:
    lines = log("A-proposed").read_bytes().splitlines(keepends=True)[:11]
    r = LOGS / "A-proposed.R"
    _, out, _ = run("explain", "--R", r, "--rank", "1", "-", stdin=b"".join(lines))
    assert "partial-free" not in out
    assert out.endswith(
        "rank 1 (vm): held, and referenced by 1 holder:\n"
        "  epilog 'dws-epilog' (ranks 1,3, since +0.224s): dropped by `epilog-finish description='dws-epilog'`, "
        "or part by part by `release ranks=... description='dws-epilog'`.\n"
    )
    _, out, _ = run("explain", "--R", r, "--rank", "0", "-", stdin=b"".join(lines))
    assert (
        "rank 0 (vm): handed over to housekeeping by `partial-free 0,2` at +0.869s (2026-12-01 14:19:47.158 UTC).\n"
        in out
    )
    _, out, _ = run("explain", "--rank", "9", "-", stdin=b"".join(lines))
    assert out.endswith("rank 9: not a rank of this job, which has ranks 0-3.\n")
    _, out, _ = run("explain", "--rank", "0", "-", stdin=b"".join(lines[:10]))
    assert "rank 0: held, and referenced by nobody.\n  the job manager posts next: `partial-free 0,2`.\n" in out


def test_explain_narrows_to_a_host(run: Run) -> None:
    job = "39392903168"
    _, out, _ = run("explain", JOURNAL, "--job", job, "--host", "node5")
    assert "rank 5 (node5): handed over to housekeeping by `free` at " in out
    assert "rank 6" not in out
    status, _, err = run("explain", JOURNAL, "--job", job, "--host", "node500")
    assert (status, "no rank is on host 'node500'; hosts: node[2-17]" in err) == (2, True)
    status, _, err = run("explain", "-", "--host", "node5", stdin=log("plain").read_bytes())
    assert (status, "not known, give R with --R" in err) == (2, True)
    assert run("explain", JOURNAL, "--job", job, "--host", "node5", "--rank", "5")[0] == 2


def test_explain_finds_the_job_that_holds_a_node(run: Run) -> None:
    lines = JOURNAL.read_bytes().splitlines(keepends=True)[:600]
    status, out, _ = run("explain", "--host", "node19", "-", stdin=b"".join(lines))
    assert status == 0
    assert out.startswith("job 39896219648:\n")
    assert out.endswith(
        "rank 19 (node19): held, and referenced by 2 holders:\n"
        "  epilog 'dws-epilog' (ranks 18-19, since +0.070s): dropped by `epilog-finish description='dws-epilog'`, "
        "or part by part by `release ranks=... description='dws-epilog'`.\n"
        "  epilog 'flush' (ranks 18-19, since +0.070s): dropped by `epilog-finish description='flush'`, "
        "or part by part by `release ranks=... description='flush'`.\n"
    )
    status, out, _ = run("explain", "--rank", "19", JOURNAL)
    assert status == 0
    assert re.fullmatch(
        r"job \d+:\n.*\nrank 19 \(node19\): handed over to housekeeping by `free` at [^\n]+\n", out, re.S
    )
    status, _, err = run("explain", "--rank", "5000", JOURNAL)
    assert (status, "no job with what was asked for" in err) == (2, True)


def test_explain_needs_to_know_which_job_of_a_journal(run: Run) -> None:
    status, out, err = run("explain", JOURNAL)
    assert (status, out, "--job" in err) == (2, "", True)
    status, _, err = run("explain", JOURNAL, "--job", "1")
    assert (status, "no events of job 1" in err) == (2, True)


def test_explain_takes_fragments_that_are_declared(run: Run) -> None:
    fragment = b"".join(log("plain").read_bytes().splitlines(keepends=True)[6:7])
    assert run("explain", "-", stdin=fragment)[0] == 2
    status, out, _ = run("explain", "--fragment", "-", stdin=fragment)
    assert (
        status,
        "the exec system (all ranks (which ones is not known: no R), since before the log begins)" in out,
    ) == (
        0,
        True,
    )


def test_explain_of_a_rank_says_what_was_wrong_with_its_release(run: Run) -> None:
    _, out, _ = run("explain", "--rank", "0", log("unmatched-finish"))
    assert out.endswith(
        "rank 0 (vm): handed over to housekeeping by `free` at +0.460s (2026-12-01 14:18:43.036 UTC). "
        "ReleasedWhileReferenced: ranks 0-1 handed over while still referenced by epilog 'a'.\n"
    )
    text = re.sub(rb',"context":\{"annotations".*\}\}\}\}', b"}", log("plain").read_bytes())
    _, out, _ = run("explain", "--rank", "7", "-", stdin=text)
    assert out.endswith("rank 7: which ranks the job has is not known; give its R with --R.\n")
    assert run("explain", "--rank", "4294967295", log("plain"))[0] == 2


def test_explain_of_a_long_log_shows_its_end(run: Run) -> None:
    lines = log("plain").read_bytes().splitlines(keepends=True)
    memo = b'{"timestamp":1796134711.6,"name":"memo","context":{"a":1}}\n'
    status, out, _ = run("explain", "-", stdin=b"".join([*lines[:6], *[memo] * 1200, *lines[6:]]))
    assert status == 0
    assert "(the last 1000 of 1210 events)" in out
    assert out.count("memo") == 996
    assert "submit" not in out


def test_explain_tells_an_epilog_from_a_start_that_was_asked_for(run: Run) -> None:
    """A fatal exception crossed the start request; the exec system drops its ranks, an epilog has none."""
    lines = log("cancel-running").read_text().splitlines(keepends=True)
    before = [
        line for line in lines if json.loads(line)["name"] in ("submit", "validate", "depend", "priority", "alloc")
    ]
    after = [
        '{"timestamp":1896134711.1,"name":"exception","context":{"type":"cancel","severity":0,"note":""}}\n',
        '{"timestamp":1896134711.2,"name":"release","context":{"ranks":"all","final":false}}\n',
        '{"timestamp":1896134711.3,"name":"epilog-start","context":{"description":"b","ranks":""}}\n',
    ]
    status, out, _ = run("explain", "-", stdin="".join([*before, *after]).encode())
    assert status == 0
    cells = [[cell.strip() for cell in line.split("│")] for line in out.splitlines() if "│" in line]
    assert [row[5] for row in cells[-2:]] == ["b: no rank", "(exec asked to start: no rank)"]


# -- what a log says does nothing to a terminal, and forges no line --


@pytest.mark.requirement("PR-49")
@pytest.mark.parametrize("command", ["check", "explain"])
def test_control_characters_are_escaped(run: Run, command: str) -> None:
    text = log("unmatched-finish").read_text().replace('"b"', r'"b\u001b[2J\nINACTIVE \u202e\ud83d\ude00"')
    text += '{"timestamp":1796134790,"name":"x\\u001b[2J\\nother.eventlog: ok"}\n'
    _, out, _ = run(command, "-", stdin=text.encode())
    assert out.replace("\n", "").isprintable()
    assert "\nINACTIVE \\u202e" not in out
    assert "other.eventlog: ok" in out
    assert not any(line.startswith("other.eventlog") for line in out.splitlines())


def test_a_line_for_people_has_an_end(run: Run) -> None:
    text = log("unmatched-finish").read_text().replace('"b"', json.dumps("b" * 100_000))
    _, out, _ = run("check", "-", stdin=text.encode())
    assert max(map(len, out.splitlines())) < 1100


def test_the_r_beside_a_journal_is_not_that_of_its_jobs(run: Run, tmp_path: Path) -> None:
    journal = re.sub(rb',"R":\{.*\}\n', b"}\n", JOURNAL.read_bytes())
    (tmp_path / "journal.ndjson").write_bytes(journal)
    (tmp_path / "journal.R").write_text('{"version":1,"execution":{"R_lite":[{"rank":"900-901"}]}}')
    status, out, _ = run("check", tmp_path / "journal.ndjson")
    assert status == 0
    assert "900-901" not in out


def test_odd_paths_and_streams_are_errors_of_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/", ".", "", "x" * 254):
        status, out, err = run("check", path)
        assert (status, out) == (2, "")
        assert err.count("\n") == 1
    assert run("check", "-", "-")[0] == 2
    status, _, err = run("check", "-", log("plain"), "missing")
    assert (status, err.count("\n")) == (2, 2)


# -- as a process --


def command(*args: str | Path, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "partialrelease", *map(str, args)],
        check=False,
        capture_output=True,
        timeout=60,
        **settings,
    )


def test_the_commands_are_listed_with_whole_sentences(run: Run) -> None:
    _, out, _ = run("--help")
    commands = out.partition("Commands:\n")[2].splitlines()
    assert len(commands) == 6
    assert all(line.endswith(".") and not line.endswith("...") for line in commands)


def test_it_runs_as_a_module_and_writes_to_pipes() -> None:
    done = command("check", "-", input=log("unmatched-finish").read_bytes())
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "partialrelease", "check", *[str(JOURNAL)] * 3],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.parametrize(
    ("redirections", "error"),
    [
        (">/dev/full", b"error: standard output: No space left on device\n"),
        (">&-", b"error: standard output is closed\n"),
        ("<&- 2>&1 | cat; exit ${PIPESTATUS[0]}", b""),
        ("2>/dev/full >/dev/full", b""),
    ],
)
def test_streams_that_cannot_be_used_end_it_with_status_2(redirections: str, error: bytes) -> None:
    line = f"{sys.executable} -m partialrelease check {log('plain')} - {redirections}"
    done = subprocess.run(["bash", "-c", line], check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 2
    assert b"Traceback" not in done.stdout + done.stderr
    assert done.stderr.endswith(error)


def test_what_the_locale_cannot_encode_is_escaped() -> None:
    text = log("unmatched-finish").read_text().replace('"b"', '"é"').encode()
    done = command("check", "-", input=text, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, rb"epilog '\xe9' finishes" in done.stdout) == (1, True)


def test_without_the_extra_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['click'] = None; from partialrelease.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == b"partialrelease: the command line needs click: pip install 'partialrelease[cli]'\n"


def test_the_core_needs_neither_the_extra_nor_the_shell() -> None:
    code = (
        "import sys\n"
        "for name in ('msgspec', 'click', 'rich', 'backports'): sys.modules[name] = None\n"
        "import partialrelease\n"
        "partialrelease.apply(partialrelease.Job(), partialrelease.Submit())\n"
        "try: partialrelease.read_log\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
    assert done.stdout == b"read_log needs msgspec: pip install 'partialrelease[cli]'\n"


def test_a_terminal_gets_a_progress_bar_and_no_other_place_does(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    with (
        (tmp_path / "out").open("wb") as out,
        subprocess.Popen(
            [sys.executable, "-m", "partialrelease", "check", "--format=json", str(JOURNAL)],
            stdout=out,
            stderr=slave,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        ),
    ):
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error
            while part := os.read(master, 65536):
                shown += part
        os.close(master)
    assert b"checking" in shown
    assert (tmp_path / "out").read_bytes().count(b"\n") == 500
