"""A release in one command, on a copy of the tree with a history of its own."""

import importlib.util
import subprocess
import sys
import tomllib

import pytest
import release as releasing
from artifacts import found, problems
from tree_copies import ROOT, copy_of_tree

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None or importlib.util.find_spec("build") is None,
    reason="what builds is installed on one Python",
)
NOW = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
SECTION = "## 9.0.0 (2030-01-01)\n\n### Added\n\n- Something new.\n\n## Unreleased\n"
IDENTITY = ("-c", "user.name=Tester", "-c", "user.email=tester@example.com")


def git(tree, *words):
    command = ["git", *IDENTITY, *words]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def release(tree, version="9.0.0"):
    return subprocess.run(
        ["make", "--no-print-directory", "release", f"VERSION={version}", f"VENV={sys.prefix}"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """A copy with one commit and a section for version 9.0.0; each test goes on from there."""
    tree = copy_of_tree(tmp_path_factory.mktemp("release") / "tree")
    log = tree / "CHANGELOG.md"
    log.write_text(log.read_text(encoding="utf-8").replace("## Unreleased\n", SECTION, 1), "utf-8")
    git(tree, "init", "--quiet", "--initial-branch=main")
    git(tree, "config", "user.name", "Tester")
    git(tree, "config", "user.email", "tester@example.com")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "-m", "All")
    git(tree, "tag", "all")
    return tree


@pytest.fixture
def tree(committed):
    git(committed, "tag", "--force", "start", "all")
    yield committed
    git(committed, "reset", "--quiet", "--hard", "all")
    git(committed, "clean", "--quiet", "-fd")
    for tag in git(committed, "tag", "--list", "v*").split():
        git(committed, "tag", "--delete", tag)


def refused(tree, done):
    """What it said; nothing was changed."""
    assert done.returncode != 0
    assert git(tree, "tag", "--list", "v*") == ""
    assert git(tree, "rev-parse", "HEAD") == git(tree, "rev-parse", "start")
    assert git(tree, "diff", "--", "pyproject.toml") == ""
    return done.stderr


def test_a_release_is_committed_tagged_built_and_not_sent(tree):
    done = release(tree)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing was sent anywhere" in done.stdout
    assert "has not passed" in done.stdout
    assert git(tree, "show", "--format=%s", "--name-only", "HEAD").split("\n") == [
        "Version 9.0.0",
        "",
        "pyproject.toml",
    ]
    assert git(tree, "diff", "start", "--unified=0", "--", "pyproject.toml").splitlines()[-2:] == [
        f'-version = "{NOW}"',
        '+version = "9.0.0"',
    ]
    assert git(tree, "rev-parse", "v9.0.0^{commit}") == git(tree, "rev-parse", "HEAD")
    assert "- Something new." in git(tree, "tag", "--list", "-n9", "v9.0.0")
    assert "### Added" in git(tree, "tag", "--list", "-n9", "v9.0.0")
    assert git(tree, "status", "--porcelain") == ""
    built = found(tree / "dist" / "9.0.0")
    assert built.wheel.name == "refold-9.0.0-py3-none-any.whl"
    assert list(problems(built, tree)) == []
    assert "There is a tag v9.0.0 already" in release(tree).stderr


def test_a_release_says_whether_the_checks_passed_on_its_commit(tree, tmp_path, monkeypatch):
    monkeypatch.setattr(releasing, "ROOT", tree)
    monkeypatch.setattr(releasing, "PASSED", tmp_path / "passed")
    assert "has not passed" in releasing.passed()
    (tmp_path / "passed").write_text(git(tree, "rev-parse", "HEAD") + "\n", encoding="utf-8")
    assert "has not passed" not in releasing.passed()
    git(tree, "commit", "--quiet", "--allow-empty", "-m", "More")
    assert "has not passed" in releasing.passed()


@pytest.mark.parametrize("version", ["", "9", "v9.0.0", "9.0.0rc1"])
def test_what_is_no_version_is_refused(tree, version):
    assert "Name the version" in refused(tree, release(tree, version))


def test_an_older_version_is_refused(tree):
    assert f"0.0.9 is older than {NOW}" in refused(tree, release(tree, "0.0.9"))


def test_a_version_that_the_changelog_does_not_know_is_refused(tree):
    assert "no section '## 9.0.1'" in refused(tree, release(tree, "9.0.1"))


@pytest.mark.parametrize("name", ["README.md", "src/refold/new.py"])
def test_a_tree_that_is_not_clean_is_refused(tree, name):
    (tree / name).write_text("x = 1\n", encoding="utf-8")
    assert name in refused(tree, release(tree))


def test_what_does_not_build_is_refused_and_all_is_as_it_was(tree):
    project = tree / "pyproject.toml"
    text = project.read_text(encoding="utf-8").replace("Typing :: Typed", "Typing :: Painted")
    project.write_text(text, encoding="utf-8")
    git(tree, "commit", "--quiet", "-am", "A classifier that is none")
    git(tree, "tag", "--force", "start")
    assert "does not build" in refused(tree, release(tree))


def test_what_is_built_wrongly_is_refused_and_all_is_as_it_was(tree):
    project = tree / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    wheel = '[tool.hatch.build.targets.wheel]\npackages = ["src/refold"]\n'
    assert wheel in text
    project.write_text(text.replace(wheel, f'{wheel}exclude = ["*.sql"]\n'), encoding="utf-8")
    git(tree, "commit", "--quiet", "-am", "A wheel without its statements")
    git(tree, "tag", "--force", "start")
    assert "The wheel lacks refold/stores/sqlite/sql/read.sql." in refused(tree, release(tree))
