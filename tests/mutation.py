"""Mutation testing of the core: every mutant is killed by a test, or named in ``mutants.toml`` with the reason.

    python tests/mutation.py [--workers N] [module ...]        (extra [mutation])

mutmut makes the mutants and runs the tests, in ``build/mutation``; its settings are in pyproject.toml. What has been
run is remembered: after an interruption, or a change, only what is missing runs, and every mutant that survived
before. ``rm -r build/mutation`` begins anew. Exit code: 0 if all is well, 1 if a mutant survives that is not named in
mutants.toml, or one is named there that does not.

Three things are not mutated. Code outside functions (tables, constants, defaults). Functions inside functions. And
*wording*: a mutant that only changes plain text with a blank in it, which is part of a message for people.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import resource
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "mutation"
LISTED = Path(__file__).with_name("mutants.toml")
MEMORY = 4 << 30  # bytes that a mutant may take: some make a list of what was a range
KILLED, SURVIVED, TIMEOUT = "killed", "survived", "timeout"
STATUS = {0: SURVIVED, 1: KILLED, 3: KILLED, -24: TIMEOUT, 24: TIMEOUT, 36: TIMEOUT, 152: TIMEOUT, 255: TIMEOUT}

# mutmut leaves decorated functions alone. That a property is one is a matter of spelling.
PROPERTY = re.compile(r"^( +)@property\n\1def (\w+)(\(self\)[^\n]*\n(?:\n*\1 [^\n]*\n)+)", re.MULTILINE)


@frozen
class Mutant:
    """``before`` and ``after``: the changed lines of the function, each statement on a line of its own."""

    function: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.function}\n    - {self.before}\n    + {self.after}"


def spelled_out(source: str) -> str:
    """The module with each ``@property def f`` as a function ``f_`` and ``f = property(f_)``."""
    return PROPERTY.sub(r"\1def \2_\3\1\2 = property(\2_)\n", source)


def prepare(modules: list[str]) -> None:
    """Bring the copy that is mutated up to date, but touch nothing in it that has not changed."""
    core = {ROOT / "partialrelease" / f"{name}.py" for name in modules}
    files = [ROOT / "pyproject.toml"]
    for folder in ("partialrelease", "tests", "tla"):
        files += [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    for path in files:
        content = path.read_bytes()
        if path in core:
            content = spelled_out(content.decode()).encode()
        copy = WORK / path.relative_to(ROOT)
        if copy.exists() and copy.read_bytes() == content:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
        stale = WORK / "mutants" / path.relative_to(ROOT)  # mutmut renews what it mutates, and no other file
        if path not in core and stale.exists():
            stale.write_bytes(content)
    for copy in [*WORK.glob("tests/**/*.py"), *WORK.glob("mutants/tests/**/*.py")]:
        inside = copy.relative_to(WORK / "mutants" if (WORK / "mutants") in copy.parents else WORK)
        if not (ROOT / inside).exists():
            copy.unlink()


def results(module: str) -> dict[str, int | None]:
    """The exit code of the tests by mutant; None where they have not run."""
    path = WORK / "mutants" / "partialrelease" / f"{module}.py.meta"
    return dict(json.loads(path.read_text())["exit_code_by_key"]) if path.exists() else {}


def forget_survivors(module: str) -> None:
    """Tests may have been added for them."""
    path = WORK / "mutants" / "partialrelease" / f"{module}.py.meta"
    if path.exists():
        meta = json.loads(path.read_text())
        codes = meta["exit_code_by_key"]
        done = {key: code for key, code in codes.items() if STATUS.get(code) in (KILLED, TIMEOUT)}
        meta["exit_code_by_key"] = {key: done.get(key) for key in codes}
        path.write_text(json.dumps(meta, indent=4))


def functions(module: str) -> dict[str, ast.FunctionDef]:
    """Every function of the mutated module, mutants included, by mutmut's names."""
    tree = ast.parse((WORK / "mutants" / "partialrelease" / f"{module}.py").read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found += [each for each in node.body if isinstance(each, ast.FunctionDef)]
    return {node.name: node for node in found}


def lines(function: ast.FunctionDef) -> list[str]:
    function.name = "f"
    return [line.strip() for line in ast.unparse(function).splitlines()]


class _NoWording(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) and " " in node.value else node


def is_wording(one: ast.FunctionDef, other: ast.FunctionDef) -> bool:
    first, second = (_NoWording().visit(ast.parse(ast.unparse(each))) for each in (one, other))
    return ast.dump(first) == ast.dump(second)


def described(module: str, names: list[str]) -> Iterator[tuple[str, Mutant, bool]]:
    """What each of these mutants is, and whether it is one of wording."""
    code = functions(module) if names else {}
    for name in names:
        mangled = name.rpartition(".")[2]
        mangled_original = mangled.rpartition("__mutmut_")[0]
        original, mutated = code[f"{mangled_original}__mutmut_orig"], code[mangled]
        diff = list(unified_diff(lines(original), lines(mutated), lineterm="", n=0))[2:]
        before = " ".join(line[1:] for line in diff if line.startswith("-"))
        after = " ".join(line[1:] for line in diff if line.startswith("+"))
        function = mangled_original.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
        yield name, Mutant(f"{module}.{function}", before, after), is_wording(original, mutated)


def main() -> int:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
    core = [Path(path).stem for path in settings["only_mutate"]]
    parser = argparse.ArgumentParser(description="Mutation testing of the core; see the docstring.")
    parser.add_argument("modules", nargs="*", metavar="module", help=f"of {', '.join(core)} (default: all)")
    parser.add_argument("--workers", type=int, default=1, help="mutants at a time (default: 1)")
    parser.add_argument("--report", action="store_true", help="run nothing, report what was found")
    options = parser.parse_args()
    if unknown := set(options.modules) - set(core):
        parser.error(f"not of the core: {', '.join(sorted(unknown))}")
    modules = options.modules or core

    if not options.report:
        mutmut = shutil.which("mutmut", path=str(Path(sys.executable).parent)) or shutil.which("mutmut")
        if mutmut is None:
            parser.error("mutmut is missing: pip install 'partialrelease[mutation]'")
        prepare(core)
        for module in modules:
            forget_survivors(module)
            todo = [name for name, code in results(module).items() if code is None] or [f"partialrelease.{module}.*"]
            command = [mutmut, "run", "--max-children", str(options.workers), *todo]
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            if (code := subprocess.run(command, cwd=WORK, check=False).returncode) != 0:
                return code

    listed = Counter(Mutant(each["function"], each["before"], each["after"]) for each in _listed())
    seen: Counter[Mutant] = Counter()
    bad: list[tuple[str, Mutant | str]] = []
    print(f"\n{'module':<14}{'mutants':>8}{'killed':>8}{'timeout':>8}{'equivalent':>11}{'wording':>8}{'survived':>9}")
    total: Counter[str] = Counter()
    for module in modules:
        status = {
            name: STATUS.get(code, "not run") if code is not None else "not run"
            for name, code in results(module).items()
        }
        count = Counter(status.values())
        bad += [("not run", name) for name, each in status.items() if each == "not run"]
        count["mutants"] = len(status)
        survivors = [name for name, each in status.items() if each == SURVIVED]
        for _, mutant, wording in described(module, survivors):
            count[SURVIVED] -= 1
            if wording:
                count["wording"] += 1
            elif seen[mutant] < listed[mutant]:
                count["equivalent"] += 1
                seen[mutant] += 1
            else:
                count[SURVIVED] += 1
                bad.append((SURVIVED, mutant))
        total += count
        print(_row(module, count))
    print(_row("all", total))
    stale = (listed - seen).elements()
    bad += [("listed, but no survivor", each) for each in stale if each.function.partition(".")[0] in modules]
    for what, which in bad:
        print(f"\n{what}: {which}")
    return 1 if bad else 0


def _listed() -> list[dict[str, str]]:
    return list(tomllib.loads(LISTED.read_text()).get("equivalent", ()))


def _row(name: str, count: Counter[str]) -> str:
    return (
        f"{name:<14}{count['mutants']:>8}{count[KILLED]:>8}{count[TIMEOUT]:>8}{count['equivalent']:>11}"
        f"{count['wording']:>8}{count[SURVIVED]:>9}"
    )


if __name__ == "__main__":
    sys.exit(main())
