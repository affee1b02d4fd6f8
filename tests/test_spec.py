"""The pages of spec/ say what is so: requirements are traced, commands print what is shown, links lead somewhere."""

import json
import re
from functools import reduce
from pathlib import Path

import pytest
from spec_text import (
    ROOT,
    SPEC,
    TABLE,
    TEXT,
    Reference,
    commands,
    mentions,
    model_files,
    of_model,
    of_tests,
    output_of,
    pages,
    problems,
    python_files,
    references,
    requirements,
    table,
)

from partialrelease import (
    INSTANCE_STATE_RULES,
    INSTANCE_STEP_RULES,
    STATE_RULES,
    STEP_RULES,
    Alloc,
    Code,
    Event,
    Finish,
    IdSet,
    Job,
    LastRank,
    Malformed,
    PartialFree,
    Start,
    Submit,
    Unknown,
    apply,
    decide,
    effect,
    make_event,
    read_log,
)

REQUIREMENTS = requirements(TEXT.read_text())
KEY_WORD = re.compile(r"\b(MUST|SHALL|SHOULD|MAY|REQUIRED|RECOMMENDED|OPTIONAL)\b")
NAMES = re.compile(r"^\*(\w+(?:, \w+)*)\.\*")
DECISIONS = sorted((SPEC / "decisions").glob("[0-9]*.md"))
COMMANDS = [(page, *command) for page in pages() for command in commands(page)]


# -- requirements --


def test_requirements_are_numbered_and_nothing_else_is_normative() -> None:
    assert [id_ for id_, _ in REQUIREMENTS] == [f"PR-{number:02}" for number in range(1, len(REQUIREMENTS) + 1)]
    assert all(KEY_WORD.search(said) for _, said in REQUIREMENTS)
    _, _, after_the_key_words = TEXT.read_text().partition("All else explains.")
    rest = re.sub(r"^\*\*PR-\d\d\*\*.*?(?=\n\n)", "", after_the_key_words, flags=re.MULTILINE | re.DOTALL)
    assert len(rest) > 5000
    assert KEY_WORD.findall(rest) == []
    headed = re.sub(r"^(\*[^*]+\* )?\*\*PR-\d\d\*\*", "", rest, flags=re.MULTILINE)
    assert not re.search(r"\*\*PR-", headed)


def test_every_requirement_has_a_test_or_a_model_and_every_reference_is_to_one() -> None:
    assert problems(REQUIREMENTS, references()) == []


def test_a_requirement_without_reference_and_a_reference_to_none_are_found() -> None:
    known = [("PR-" + "01", "one"), ("PR-" + "02", "two")]
    found = [Reference(ROOT / "tests" / "test_job.py", "test_x", "PR-" + number) for number in ("01", "99")]
    unknown, missing = problems(known, found)
    assert unknown == "tests/test_job.py: test_x refers to PR-" + "99, which is no requirement"
    assert missing == "no test and no model refers to PR-" + "02: two"


@pytest.mark.parametrize("file", [*python_files(), *model_files()], ids=lambda file: file.name)
def test_no_reference_is_overlooked(file: Path) -> None:
    found = list(of_tests(file) if file.suffix == ".py" else of_model(file))
    assert mentions(file) == len(found)


@pytest.mark.parametrize("file", model_files(), ids=lambda file: file.name)
def test_what_refers_to_a_requirement_is_checked_or_part_of_what_is(file: Path) -> None:
    text = "".join(path.read_text() for path in [*(ROOT / "tla").glob("**/*.tla"), *(ROOT / "tla").glob("**/*.cfg")])
    for reference in of_model(file):
        if reference.name:
            assert len(re.findall(rf"\b{reference.name}\b", text)) > 1, reference
        else:
            assert list(file.parent.glob(f"{file.stem}*.cfg"))


def test_a_rejected_design_refers_to_what_it_lacks() -> None:
    for file in (ROOT / "tla" / "rejected").glob("*.tla"):
        assert [reference.name for reference in of_model(file)] == [""], file


def test_the_table_is_fresh() -> None:
    assert TABLE.read_text() == table(REQUIREMENTS, references()), "write it with: python tests/spec_text.py"


def test_other_pages_refer_to_requirements_that_there_are() -> None:
    ids = {id_ for id_, _ in REQUIREMENTS}
    for page in pages():
        assert set(re.findall(r"PR-\d+", page.read_text())) <= ids, page


NAMED = [(id_, name) for id_, said in REQUIREMENTS for name in re.findall(r"\w+", "".join(NAMES.findall(said)))]


@pytest.mark.parametrize(("id_", "name"), NAMED)
def test_a_rule_with_a_name_is_the_model_s_of_that_name(id_: str, name: str) -> None:
    assert [each for each in references() if each.file.suffix == ".tla" and (each.id, each.name) == (id_, name)]


def test_every_rule_of_the_code_is_a_requirement() -> None:
    in_code = {*STATE_RULES, *STEP_RULES, *INSTANCE_STATE_RULES, *INSTANCE_STEP_RULES}
    assert len(in_code) > 12
    assert in_code <= {name for _, name in NAMED}


# -- the normative text and the code --


def test_the_codes_are_those_of_the_code_in_that_order() -> None:
    assert re.findall(r"^\| `([A-Z]\w+)` \|", TEXT.read_text(), re.MULTILINE) == [code.value for code in Code]


def test_every_event_with_an_effect_is_in_the_table() -> None:
    _, _, rows = TEXT.read_text().partition("| event | may happen | effect |\n")
    rows, _, _ = rows.partition("\n\n")
    named = {name for row in rows.splitlines() for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])}
    silent = {"dependency-add", "dependency-remove", "set-flags", "memo", "resource-update"}  # "any other name"
    known = {of.name for of in Event.__subclasses__() if of not in (Unknown, Malformed)}
    assert named - {"description", "final", "scheduler-restart"} == known - silent


@pytest.mark.requirement("PR-01", "PR-02", "PR-03", "PR-17")
def test_the_example_is_what_a_manager_does() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", TEXT.read_text(), re.DOTALL)
    job = reduce(apply, (Submit(), Alloc(IdSet("0-3")), Start(), Finish()), Job())
    for line in example.splitlines():
        entry = json.loads(line)
        event, due = make_event(entry["name"], entry["context"]), decide(job)
        assert due == (event if isinstance(event, PartialFree) else None)
        job = apply(job, event)
    assert (job.held, job.referenced, decide(job)) == (IdSet("0"), IdSet("0"), None)


@pytest.mark.requirement("PR-27", "PR-28")
def test_no_event_changes_the_setting_and_it_is_keep_unless_said_otherwise() -> None:
    assert Job().last_rank is LastRank.KEEP
    for log in (ROOT / "tests" / "data" / "eventlogs").glob("*.eventlog"):
        for setting in LastRank:
            job = reduce(effect, (entry.event for entry in read_log(str(log))), Job(setting))
            assert job.last_rank is setting


# -- commands, decisions, links --


@pytest.mark.parametrize(
    ("page", "command", "output"),
    [
        pytest.param(
            page,
            command,
            output,
            id=f"{page.stem}: {command[:50]}",
            marks=[pytest.mark.slow] if "model-check" in command else [],
        )
        for page, command, output in COMMANDS
    ],
)
def test_commands_print_what_the_pages_show(page: Path, command: str, output: str) -> None:
    assert output_of(command) == output, "write it with: python tests/spec_text.py"


def test_every_block_of_the_pages_is_run() -> None:
    for page in pages():
        blocks = re.findall(r"^```(\w+)$", page.read_text(), re.MULTILINE)
        assert blocks.count("console") == len(commands(page))
        assert set(blocks) <= ({"console", "json"} if page == TEXT else {"console"})


def test_every_rejected_design_is_shown_in_a_decision() -> None:
    shown = {command.split()[2] for _, command, _ in COMMANDS if "--counterexample" in command}
    assert shown == {config.stem for config in (ROOT / "tla" / "rejected").glob("*.cfg")}


def test_every_log_beside_the_decisions_is_shown() -> None:
    for log in (SPEC / "decisions").glob("*.eventlog"):
        assert sum(str(log.relative_to(ROOT)) in command for _, command, _ in COMMANDS) == 1


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_a_question_evidence_a_choice_and_what_would_change_it(page: Path) -> None:
    text = page.read_text()
    heads = [head for head in re.findall(r"^\*\*([\w ]+)[.*]", text, re.MULTILINE) if head not in ("Seen", "Proved")]
    assert heads == ["Question", "Choice", "What would change it"]
    assert commands(page)
    assert page.name in (SPEC / "decisions" / "README.md").read_text()
    assert len(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL).split()) < 350


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link
