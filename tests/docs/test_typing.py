"""Types survive, and every example of the documentation is as strict as the library."""

import asyncio
import importlib.util
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import typed_agents
from project_paths import ROOT
from test_docs import PAGES, blocks_of

STRICT = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    # A page is read from top to bottom: it shows values, and says things anew as it goes on.
    "reportUnusedExpression": False,
    "reportRedeclaration": False,
    "reportUnusedClass": False,
    "reportUnusedFunction": False,
    "reportUnusedVariable": False,
}
needs_pyright = pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None, reason="pyright is installed on one Python"
)


def as_module(page: Path) -> str:
    """The examples of a page as one coroutine, for they await; each line keeps its number."""
    lines = ["async def page() -> None:"]
    for block in blocks_of(page):
        if block.language == "python":
            lines += [""] * (block.line - len(lines))
            lines += textwrap.indent(block.text, "    ").splitlines()
    return "\n".join(lines) + "\n"


def check(folder: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    config = folder / "pyrightconfig.json"
    include = [str(file) for file in (folder, *files)]
    config.write_text(json.dumps(STRICT | {"include": include}), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pyright", "-p", config, "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_an_agent_with_types_runs():
    asyncio.run(typed_agents.main())


@needs_pyright
def test_every_example_passes_pyright_strict(tmp_path):
    pages = [page for page in PAGES if any(one.language == "python" for one in blocks_of(page))]
    assert len(pages) > 30
    for page in pages:  # in one run of pyright, which reads the libraries once
        name = "__".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
        (tmp_path / f"{name}.py").write_text(as_module(page), encoding="utf-8")
    said = check(tmp_path, ROOT / "tests" / "typed_agents.py")
    assert said.returncode == 0, said.stdout


@needs_pyright
def test_an_example_without_types_is_found_on_its_line(tmp_path):
    page = tmp_path / "page.md"
    skipped = "<!-- not executed: why -->\n```python\nnobody_knows\n```\n"
    examples = (
        "```python\nimport asyncio\n\nawait asyncio.sleep(0)\n```\n\n"
        "```python\nasync def bad(x):\n    return x\n```\n"
    )
    page.write_text(f"# Title\n\n{skipped}\n{examples}", encoding="utf-8")
    (tmp_path / "page.py").write_text(as_module(page), encoding="utf-8")
    said = check(tmp_path)
    assert said.returncode == 1
    found = [line for line in said.stdout.splitlines() if "error:" in line]
    wrong = 1 + page.read_text("utf-8").splitlines().index("async def bad(x):")
    assert found
    assert all(f"page.py:{wrong}:" in line or f"page.py:{wrong + 1}:" in line for line in found)
