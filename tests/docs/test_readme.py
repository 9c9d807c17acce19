"""The README: short, followed to the letter by a script, and with links that lead somewhere."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from follow_readme import README, Differs, extras_of, follow, to_follow, with_free_ports

ROOT = README.parent
PROGRAMS = Path(sys.executable).parent
LINK = re.compile(r"(?<!!)\[[^\]]+\]\((?!https?:)([^)#]+)(?:#([^)]+))?\)")
IMAGE = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")


@pytest.fixture(scope="module")
def readme():
    return README.read_text(encoding="utf-8")


def page_of(folder, text):
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def followed(folder, text):
    (folder / "work").mkdir()
    return follow(to_follow(page_of(folder, text)), PROGRAMS, folder / "work")


def console(*lines):
    return "\n".join(["```console", *lines, "```", ""])


def test_every_link_and_picture_is_there(readme):
    found = [path for path, _ in LINK.findall(readme)] + IMAGE.findall(readme)
    assert len(found) > 20
    assert [path for path in found if not (ROOT / path).exists()] == []


def test_it_fits_three_screens(readme):
    assert len(readme.splitlines()) <= 180


def test_the_first_code_is_within_two_screens(readme):
    assert readme.index("```python") < 5_000
    assert readme[: readme.index("```python")].count("\n") <= 60


def test_the_ways_to_start_are_among_what_the_script_follows():
    typed = "\n".join(block.text for block in to_follow(README))
    for way in ("python agent.py", "refold wrap", "refold serve", "refold demo", "refold lab"):
        assert f"$ {way}" in typed
    assert "API_KEY" not in typed


def test_the_extras_that_it_names_exist():
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in extras_of(README).split(","):
        assert f"\n{extra} = [" in declared


def cells(text, name):
    [row] = re.findall(rf"^\| {name} \|(.+)\|$", text, re.MULTILINE)
    return [cell.strip() for cell in row.split("|")]


def test_what_it_says_of_others_is_what_the_dated_page_says(readme):
    page = (ROOT / "docs" / "start" / "how-it-compares.md").read_text(encoding="utf-8")
    theirs = ["Refold", "Pydantic AI harness", "LangChain, deepagents", "Letta", "OpenHands SDK"]
    columns = re.search(r"^\| \| (Refold \| Pydantic.+) \|$", page, re.MULTILINE)
    assert columns
    places = [columns[1].split(" | ").index(name) for name in theirs]
    for name in re.findall(
        r"^\| (compacted messages|after a .+?|a summary .+?|a preview.+?|any past.+?) \|",
        readme,
        re.MULTILINE,
    ):
        whole = cells(page.partition("## Coding agents")[0], name)
        mine = [re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", cell) for cell in cells(readme, name)]
        assert mine == [whole[place] for place in places]


def test_a_page_is_followed_file_by_file_and_command_by_command(tmp_path):
    file = "```python\n# said.py\nprint('one')\nprint('two')\n```\n"
    assert followed(tmp_path, file + console("$ python said.py", "one", "…", "$ ls", "…")) == 3


@pytest.mark.parametrize(
    "lines",
    [
        ["$ echo one", "two"],
        ["$ echo one"],
        ["$ false"],
        ["$ echo one; exit 1", "one"],
        ["$ no-such-command", "…"],
    ],
)
def test_whatever_differs_is_told(tmp_path, monkeypatch, lines):
    monkeypatch.setattr("follow_readme._LONGEST", 1.0)
    with pytest.raises(Differs):
        followed(tmp_path, console(*lines))


def test_a_file_without_a_name_is_told(tmp_path):
    with pytest.raises(Differs, match="under which name"):
        followed(tmp_path, "```python\nprint('one')\n```\n")


def test_what_runs_on_is_waited_for_and_ended(tmp_path, monkeypatch):
    server = console("$ (sleep 0.3; echo ready; exec sleep 1000) &", "ready", "$ jobs -p > pids")
    assert followed(tmp_path, server) == 2
    [pid] = (tmp_path / "work" / "pids").read_text().split()
    assert subprocess.run(["ps", "-p", pid], stdout=subprocess.DEVNULL, check=False).returncode
    monkeypatch.setattr("follow_readme._LONGEST", 0.5)
    (tmp_path / "again").mkdir()
    with pytest.raises(Differs, match="did not come"):
        followed(tmp_path / "again", console("$ sleep 1000 &", "ready"))


def test_a_port_that_is_taken_is_replaced(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        [(was, instead)] = with_free_ports(f"curl http://127.0.0.1:{port}/v1").items()
        assert was == port != instead
        page = console(f"$ echo 127.0.0.1:{port} | grep -v {port}", "127.0.0.1:…")
        assert followed(tmp_path, page) == 1


def test_nobodys_keys_or_settings_are_at_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-somebody")
    assert followed(tmp_path, console("$ env | grep -c API_KEY; true", "0", "$ ls -A ~")) == 2
