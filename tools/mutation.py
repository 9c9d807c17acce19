"""Mutation testing: each small change of the code must make a test fail.

`python tools/mutation.py fit pair` changes what `mutation.toml` names, in a copy of the tree below
`.ci/build/mutants`, one change at a time, and says which changes no test noticed. The tool, mutmut,
lies in an environment of its own that sees the packages of the one that runs this.
"""

import argparse
import ast
import difflib
import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
BUILD = ROOT / ".ci" / "build" / "mutants"
GROUPS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.toml")
COPIED = ("src", "tests", "docs", "tools", "pyproject.toml", "README.md", "GLOSSARY.md")
ENDED = {0: "survived", 1: "killed", 3: "killed", 33: "not tested"}
"""What mutmut's numbers mean; the others are time-outs."""
QUICKLY = """
settings.register_profile("quick", settings.get_profile("quick"), phases=[Phase.generate])
settings.load_profile("quick")
"""
"""What fails need not be made small."""


class Mutant(NamedTuple):
    """One change, and what came of it."""

    name: str
    ended: str
    was: str
    now: str


def environment() -> Path:
    """The python that has mutmut; made when it is not there."""
    home = BUILD / "venv"
    python = home / "bin" / "python"
    if not (home / "made").exists():
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        wanted = ["-r", str(ROOT / "requirements" / "mutants.txt")]
        pip = [python, "-m", "pip", "install", "--quiet", "--require-hashes", *wanted]
        subprocess.run(pip, check=True)  # noqa: S603 - our own words
        (own,) = home.glob("lib/python*/site-packages")
        ours = [one for one in sys.path if one.endswith("site-packages")]
        (own / "beside.pth").write_text("\n".join(ours) + "\n", encoding="utf-8")
        (home / "made").touch()
    return python


def copied(group: str) -> Path:
    """A copy of the tree, set up for one group."""
    tree = BUILD / group
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__", "_build")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tree / name)
    with (tree / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(settings(group))
    conftest = tree / "tests" / "conftest.py"
    text = conftest.read_text(encoding="utf-8")
    conftest.write_text(f"{text}\nfrom hypothesis import Phase\n{QUICKLY}", encoding="utf-8")
    return tree


def settings(group: str) -> str:
    """What mutmut is told."""
    values = GROUPS[group]
    slow = [word for one in values.get("slow", ()) for word in ("--deselect", f"tests/{one}")]
    tests = [f"tests/{one}" for one in values["tests"]]
    told = {
        "source_paths": ["src"],
        "only_mutate": values["files"],
        "also_copy": ["docs", "tools", "README.md", "GLOSSARY.md"],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-p", "no:xdist", "-q", "-x"],
        "pytest_add_cli_args_test_selection": [*tests, *slow],
        "use_git_change_detection": False,
        "track_dependencies": False,
        "timeout_multiplier": 6.0,
        "timeout_constant": 30.0,
    }
    lines = (f"{name} = {json.dumps(value)}" for name, value in told.items())
    return "\n[tool.mutmut]\n" + "\n".join(lines) + "\n"


def tried(tree: Path, python: Path, digits: str) -> None:
    """Have the changes tried, one at a time: all, or those whose number ends with these digits."""
    env = {**os.environ, "HYPOTHESIS_PROFILE": "quick"}
    some = [f"*__mutmut_*{one}" for one in digits]
    run = [python, "-m", "mutmut", "run", "--max-children", "1", *some]
    with (tree / "mutmut.log").open("w", encoding="utf-8") as told:
        subprocess.run(run, cwd=tree, env=env, check=True, stdout=told)  # noqa: S603 - as above


def mutants(tree: Path) -> Iterator[Mutant]:
    """The changes and what came of them."""
    for meta in sorted((tree / "mutants").rglob("*.py.meta")):
        ended = json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"]
        source = meta.with_suffix("").read_text(encoding="utf-8")
        lines = source.split("\n")
        functions = {
            one.name: _lines(lines, one)
            for one in ast.walk(ast.parse(source))
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        for key, code in ended.items():
            name = key.rpartition(".")[2]
            how = "not tried" if code is None else ENDED.get(code, "timed out")
            first = f"{name.rpartition('__mutmut_')[0]}__mutmut_orig"
            was, now = ("", "") if code in (None, 1, 3) else _changed(functions, first, name)
            yield Mutant(key, how, was, now)


def _lines(lines: list[str], function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    first, *rest = lines[function.lineno - 1 : function.end_lineno]
    return [first.replace(function.name, ""), *rest]


def _changed(functions: dict[str, list[str]], first: str, name: str) -> tuple[str, str]:
    lines = [*difflib.unified_diff(functions[first], functions[name], n=0, lineterm="")][2:]
    was, now = ([one[1:].strip() for one in lines if one[0] == sign] for sign in "-+")
    return " ".join(was), " ".join(now)


def equivalent() -> dict[str, dict[str, str]]:
    """The changes that make no difference, and why: by function, then by the changed line."""
    return tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else {}


def function_of(mutant: Mutant) -> str:
    """The function that was changed, without mutmut's marks."""
    module, _, name = mutant.name.rpartition("__mutmut_")[0].rpartition(".")
    bare = name.removeprefix("xǁ").removeprefix("x_").replace("ǁ", ".")
    return f"{module.removeprefix('refold.')}.{bare}"


def report(group: str, tree: Path) -> str:
    """The figures, and every change that no test noticed."""
    known = equivalent()
    counts: Counter[str] = Counter()
    lines: list[str] = []
    for one in mutants(tree):
        same = one.ended != "killed" and one.now in known.get(function_of(one), {})
        counts["equivalent" if same else one.ended] += 1
        if one.ended not in ("killed", "not tried") and not same:
            lines += [f"{function_of(one)}: {one.ended} ({one.name})"]
            lines += [f"  - {one.was}", f"  + {one.now}"]
    noticed = counts["killed"] + counts["timed out"]
    judged = sum(counts.values()) - counts["equivalent"] - counts["not tried"]
    score = f"{100 * noticed / judged:.1f} %" if judged else "nothing tried"
    return "\n".join([*lines, f"{group}: {score} {dict(counts)}"])


def main() -> None:
    """Try the groups that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help=", ".join(GROUPS))
    parser.add_argument("--digits", default="", help="of the changes, a tenth for each digit")
    parser.add_argument("--again", action="store_true", help="only print what the last run found")
    given = parser.parse_args()
    for group in given.groups or GROUPS:
        if not given.again:
            tried(copied(group), environment(), given.digits)
        print(report(group, BUILD / group))


if __name__ == "__main__":
    main()
