"""Every example of the README and the documentation runs.

The blocks of one page run in order, in one namespace and one empty folder:

- ```python blocks are executed; `await` may stand at the top level;
- ```console blocks of `$ refold …` commands are run, and what they print is compared: `…` in the
  expected output stands for any text, and on a line of its own for any lines.

A block right after `<!-- not executed: reason -->` is left out.
"""

import os
import subprocess
import sys

import pytest
from forked_commands import forked_commands
from page_blocks import PLAIN, as_pattern, blocks_of, run_page
from project_paths import ROOT

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(scope="module")
def quick():
    """Where a `refold` is that starts in milliseconds."""
    with forked_commands(os.environ | PLAIN) as folder:
        yield folder


@pytest.mark.parametrize("name", [str(page.relative_to(ROOT)) for page in PAGES if blocks_of(page)])
def test_examples_run(name, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / name, tmp_path, lambda: request.getfixturevalue("quick"))


@pytest.mark.parametrize(
    "arguments", [["--version"], ["show"], ["show", "nobody"], ["-é", "\udcff"]]
)
def test_the_quick_command_does_what_the_command_does(quick, tmp_path, arguments):
    def done(command):
        ran = subprocess.run(
            [*command, *arguments],
            cwd=tmp_path,
            env=os.environ | PLAIN | {"REFOLD_STORE": "sqlite:///none.db"},
            capture_output=True,
            check=False,
        )
        return ran.returncode, ran.stdout, ran.stderr

    assert done([quick / "refold"]) == done([sys.executable, "-m", "refold.cli"])


def test_the_readme_shows_code():
    assert any(block.language == "python" for block in blocks_of(README))


def test_only_the_marked_block_is_left_out(tmp_path):
    marked, plain = "<!-- not executed: why -->\n```python\n1\n```\n", "```python\n2\n```\n"
    (tmp_path / "page.md").write_text(marked + plain + marked, encoding="utf-8")
    assert [block.text for block in blocks_of(tmp_path / "page.md")] == ["2\n"]


def test_expected_output_may_leave_out_parts():
    assert as_pattern("a … c\n…\nz\n").fullmatch("a b c\n1\n2\nz\n")
    assert as_pattern("…\nz\n").fullmatch("z\n")
    assert not as_pattern("a … c\n").fullmatch("a b c\nmore\n")
