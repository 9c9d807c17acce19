"""Runs the notebook without Jupyter."""

import ast
import asyncio
import inspect
import json
from pathlib import Path

CELLS = json.loads(Path("context.ipynb").read_text(encoding="utf-8"))["cells"]
SOURCES = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


async def main() -> None:
    names: dict[str, object] = {}
    for source in SOURCES:
        code = compile(source, "context.ipynb", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)  # noqa: S307 - the notebook's own cells
        if inspect.iscoroutine(result):
            await result


asyncio.run(main())
