"""Which files a model is not shown: those that Git ignores, by the same rules."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("pydantic_ai")

from refold.cli.chat.tools.folder import IgnoreRules, segment

NAMES = ["a", "b", "ab", "a.b", ".x", "é", "a b"]
ATOMS = ["a", "b", "*", "**/", "/**", "?", "/", "[ab]", "[!a]", "[a-b]", "!", ".", "[a", "]", " "]
ATOMS += ["[[:alpha:]]", "\\a", "\\", "#", "é", "\r", "[\\]]", "a/", "/a"]
LINES = st.lists(st.lists(st.sampled_from(ATOMS), max_size=5).map("".join), max_size=4)
ALONE = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    root = tmp_path_factory.mktemp("repository").resolve()
    subprocess.run(["git", "init", "-q", root], check=True)
    folders = ("", "a", "a/b", "ab", "b/a", "é/ab")
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for folder in folders:
        for name in NAMES:
            if not (root / folder / name).exists():
                (root / folder / name).touch()
    return root


@settings(max_examples=60)
@given(st.lists(LINES, min_size=4, max_size=4))
def test_what_is_hidden_is_what_git_ignores(repository, texts):
    for where, lines in zip(("", "a", "a/b", "b"), texts, strict=True):
        text = "\n".join(lines)
        # Git takes `x**/` and `\/` in ways that its own manual does not tell.
        assume(not any(f"{one}**" in text for one in "ab].é ?*#!\r") and "\\/" not in text)
        (repository / where / ".gitignore").write_text(text, newline="")
    paths = [
        one for one in repository.rglob("*") if ".git" not in one.relative_to(repository).parts
    ]
    names = [str(one.relative_to(repository)) for one in paths]
    done = subprocess.run(
        ["git", "-C", repository, "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(names).encode() + b"\0",
        env=os.environ | ALONE,
        capture_output=True,
        check=False,
    )
    ignored = set(done.stdout.decode().split("\0")) - {""}
    hidden = IgnoreRules(repository)
    pairs = zip(paths, names, strict=True)
    ours = {name for path, name in pairs if hidden.hides(Path(name).parts, folder=path.is_dir())}
    assert ours == ignored


def test_rules_above_the_folder_and_gits_own_apply(tmp_path):
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("mine\n")
    (tmp_path / ".gitignore").write_text("*.log\n/here\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / ".gitignore").write_text("!keep.log\n")
    hidden = IgnoreRules(inner)
    shown = {
        name: not hidden.hides((name,), folder=False)
        for name in ("a.log", "keep.log", "here", "mine")
    }
    assert shown == {"a.log": False, "keep.log": True, "here": True, "mine": False}
    assert hidden.hides(("x", ".git", "config"), folder=False)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("*.log\n!keep.log\n", {"run.log"}),
        ("!keep.log\n*.log\n", {"run.log", "keep.log"}),
        ("/src/\n!src/a.py\n", {"src/a.py"}),
        ("src/*\n!src/a.py\n", set[str]()),
        ("src/**\n!src/a.py\n", set[str]()),
        ("**/a.py\n", {"src/a.py"}),
        ("a.py/\n", set[str]()),
    ],
)
def test_the_last_rule_decides_unless_a_folder_is_hidden(tmp_path, text, hidden):
    (tmp_path / ".gitignore").write_text(text)
    ours = IgnoreRules(tmp_path)
    names = ("run.log", "keep.log", "src/a.py")
    assert {one for one in names if ours.hides(one.split("/"), folder=False)} == hidden


@given(st.text(st.sampled_from("a*?[]!^-\\:é/"), max_size=12), st.text("ab]-é", max_size=6))
def test_any_pattern_is_taken(pattern, name):
    segment(pattern).fullmatch(name)
