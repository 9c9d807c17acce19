"""What is published: its contents, its metadata, and that anybody can build the same bytes."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from artifacts import Artifacts, found, problems
from extra_proofs import PROOFS
from tree_copies import ROOT, copy_of_tree

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None or importlib.util.find_spec("build") is None,
    reason="what builds is installed on one Python",
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REGISTRY = "py" + "pi."  # in pieces, so that this file does not name what it forbids


class Builds(NamedTuple):
    """The same tree, built in two ways."""

    tree: Path
    through_sdist: Artifacts
    from_tree: Artifacts

    def problems(self, **other: Path) -> list[str]:
        """What is wrong with the second, or with another wheel or sdist in its place."""
        return list(problems(self.from_tree._replace(**other), self.tree))


def build(tree: Path, *what: str, umask: int, zone: str) -> Artifacts:
    out = tree.with_name(f"{tree.name}-dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", out, tree],
        env=os.environ | {"TZ": zone, "SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True,
        text=True,
        check=False,
        umask=umask,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return found(out)


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("builds")
    one = copy_of_tree(folder / "one")
    other = Path(shutil.copytree(one, folder / "elsewhere" / "other"))
    for at, file in enumerate(other.rglob("*")):
        os.utime(file, (1_000_000_000 + at, 1_000_000_000 + at))
        file.chmod(0o700 if file.is_dir() else file.stat().st_mode & 0o700)
    return Builds(
        one,
        build(one, umask=0o022, zone="UTC"),  # without arguments: the wheel is made from the sdist
        build(other, "--sdist", "--wheel", umask=0o077, zone="Asia/Tokyo"),
    )


def test_two_builds_give_the_same_wheel_also_through_the_sdist(builds):
    assert builds.through_sdist.wheel.read_bytes() == builds.from_tree.wheel.read_bytes()


def test_two_builds_give_the_same_sdist(builds):
    assert builds.through_sdist.sdist.read_bytes() == builds.from_tree.sdist.read_bytes()


def test_wheel_and_sdist_hold_what_belongs_there_and_nothing_else(builds):
    assert builds.problems() == []


def test_nothing_published_names_a_registry(builds):
    with zipfile.ZipFile(builds.from_tree.wheel) as wheel:
        about = [name for name in wheel.namelist() if ".dist-info/" in name]
        said = {name: wheel.read(name).decode() for name in about}
    assert len(said) == 5
    assert [name for name, text in said.items() if REGISTRY in text] == []


def without(wheel: Path, name: str, folder: Path) -> Path:
    made = folder / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w") as new:
        for one in old.namelist():
            if one != name:
                new.writestr(one, old.read(one))
    return made


@pytest.mark.parametrize(
    "name", ["refold/py.typed", "refold/stores/sqlite/sql/read.sql", "refold/view/plan_builder.py"]
)
def test_a_file_that_a_wheel_lacks_is_told(builds, tmp_path, name):
    wheel = without(builds.from_tree.wheel, name, tmp_path)
    assert builds.problems(wheel=wheel) == [f"The wheel lacks {name}."]


def test_a_file_that_does_not_belong_in_a_wheel_is_told(builds, tmp_path):
    wheel = Path(shutil.copy(builds.from_tree.wheel, tmp_path))
    with zipfile.ZipFile(wheel, "a") as opened:
        opened.writestr("tests/log/test_log.py", "")
    told = ["The wheel holds tests/log/test_log.py, which does not belong there."]
    assert builds.problems(wheel=wheel) == told


def test_a_file_that_an_sdist_lacks_is_told(builds, tmp_path):
    with tarfile.open(builds.from_tree.sdist) as old:
        old.extractall(tmp_path, filter="data")
    (inside,) = tmp_path.iterdir()
    (inside / "Makefile").unlink()
    sdist = tmp_path / builds.from_tree.sdist.name
    with tarfile.open(sdist, "w:gz") as new:
        new.add(inside, inside.name)
    assert builds.problems(sdist=sdist) == ["The sdist lacks Makefile."]


@pytest.mark.parametrize(
    ("line", "other", "told"),
    [
        ("Requires-Dist: pydantic>=", "Requires-Dist: requests\nRequires-Dist: pydantic>=", "need"),
        ("Provides-Extra: models\n", "", "extras"),
        ("Classifier: Typing :: Typed\n", "", "classifiers"),
        ("License-Expression: MIT", "License-Expression: MIT-0", "licence"),
        ("text/markdown", "text/plain", "Markdown"),
        ("# Refold", "# Another", "PACKAGE.md"),
    ],
)
def test_metadata_that_says_something_else_is_told(builds, tmp_path, line, other, told):
    name = f"refold-{PROJECT['version']}.dist-info/METADATA"
    with zipfile.ZipFile(builds.from_tree.wheel) as wheel:
        text = wheel.read(name).decode()
    assert line in text
    wheel = without(builds.from_tree.wheel, name, tmp_path)
    with zipfile.ZipFile(wheel, "a") as opened:
        opened.writestr(name, text.replace(line, other, 1))
    (only,) = builds.problems(wheel=wheel)
    assert told in only


def test_every_extra_has_a_proof():
    assert set(PROOFS) == set(PROJECT["optional-dependencies"])


def named(page: Path) -> set[str]:
    """The extras that a page installs."""
    found = re.findall(r"refold\[([\w,-]+)\]", page.read_text(encoding="utf-8"))
    return {extra for listed in found for extra in listed.split(",")}


def test_every_extra_that_a_page_names_is_one_and_bundles_are_whole():
    extras = PROJECT["optional-dependencies"]
    told = {page: named(page) for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]}
    assert told[ROOT / "README.md"] >= {"chat", "serve"}
    assert {page: wrong for page, names in told.items() if (wrong := names - set(extras))} == {}

    def packages(extra: str) -> set[str]:
        return {re.split(r"[\[<>=]", need)[0] for need in extras[extra]}

    assert packages("models") | packages("settings") <= packages("cli")
    assert packages("cli") | packages("pydantic-ai") <= packages("chat")
    assert packages("cli") | packages("pydantic-ai") <= packages("serve")
    assert packages("cli") <= packages("mcp")
    assert packages("serve") | packages("mcp") == packages("wrap")
