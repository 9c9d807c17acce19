"""Measures the code itself: how many files and lines, how they are named, what one request touches.

    python tools/house.py                 a table
    python tools/house.py --check         and exit with 1 where a ceiling is exceeded
    python tools/house.py --json
    python tools/house.py --list names    every case of one measure

The ceilings are there against relapse, not against growth: a new capability raises them by what it
needs, in the commit that needs it.
"""

import argparse
import ast
import asyncio
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, cast

ROOT: Final = Path(__file__).parent.parent
SOURCE: Final = ROOT / "src" / "refold"
PARTICIPLES: Final = frozenset(
    re.findall(
        r"\w+",
        """
        told said asked kept heard gone known made done seen found shown given held taken begun
        written one wanted placing keeping asking telling standing steering following surely beneath
        aside newest joining listening
        """,
    )
)
"""Words that name nothing."""
SMALL, SMALL_PRIVATE, SHORT_DOCSTRING = 100, 150, 4
CEILINGS: Final = {
    "files": 425,
    "files without testing": 391,
    "lines": 102_300,
    "lines without testing": 95_900,
    "modules under 100 lines": 40,
    "modules with one neighbor as importer": 20,
    "names that are participles": 30,
    "docstrings of four words": 20,
    "import cycles": 0,
    "private imports": 1,
    "files of a request, capability": 50,
    "files of a request, gateway": 66,
}
"""Measure -> the most that is allowed."""


class Module(NamedTuple):
    """One file."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """Of the file, blank ones included."""
        return self.text.count("\n")

    @property
    def package(self) -> str:
        """Where relative names and neighbors are."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]


class Measure(NamedTuple):
    """A figure, and the cases behind it."""

    name: str
    value: int
    cases: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether it is within its ceiling."""
        return self.value <= CEILINGS.get(self.name, self.value)


def modules(source: Path = SOURCE) -> dict[str, Module]:
    """Every module of the package, by its name."""
    found: dict[str, Module] = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        found[name] = Module(name, path, text, ast.parse(text))
    return found


def static_measures(source: Path = SOURCE) -> list[Measure]:
    """What can be counted without running anything."""
    every = modules(source)
    shipped = {name: one for name, one in every.items() if not name.startswith("refold.testing")}
    graph = imports(every)
    small = [one.name for one in every.values() if _is_small(one)]
    private = [*_with_one_neighbor(every, graph)]
    names = [*_participles(every)]
    docstrings = [*_short_docstrings(every)]
    cycles = [" ".join(sorted(each)) for each in components(graph) if len(each) > 1]
    foreign = [*_private_imports(every)]
    return [
        Measure("files", len(every)),
        Measure("files without testing", len(shipped)),
        Measure("lines", sum(one.lines for one in every.values())),
        Measure("lines without testing", sum(one.lines for one in shipped.values())),
        Measure("modules under 100 lines", len(small), tuple(small)),
        Measure("modules with one neighbor as importer", len(private), tuple(private)),
        Measure("names that are participles", len(names), tuple(names)),
        Measure("docstrings of four words", len(docstrings), tuple(docstrings)),
        Measure("import cycles", len(cycles), tuple(cycles)),
        Measure("private imports", len(foreign), tuple(foreign)),
    ]


def imports(every: dict[str, Module]) -> dict[str, set[str]]:
    """Module -> the modules of ours that it imports, at its top or in a function."""
    return {name: {*_imported(one, every)} - {name} for name, one in every.items()}


def _imported(module: Module, every: dict[str, Module]) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in every)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in every:
                    yield whole
                elif node.module in every:
                    yield node.module


def components(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected ones, after Tarjan; a package's `__init__` counts like any file."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            start = stack.index(name)
            found.append(stack[start:])
            del stack[start:]

    for name in graph:
        if name not in index:
            visit(name)
    return found


def _is_small(module: Module) -> bool:
    return module.path.name != "__init__.py" and module.lines < SMALL


def _with_one_neighbor(every: dict[str, Module], graph: dict[str, set[str]]) -> Iterator[str]:
    for name, module in every.items():
        importers = [other for other, used in graph.items() if name in used]
        if module.path.name == "__init__.py" or module.lines >= SMALL_PRIVATE:
            continue
        if len(importers) == 1 and every[importers[0]].path.parent == module.path.parent:
            yield name


def _participles(every: dict[str, Module]) -> Iterator[str]:
    for name, module in every.items():
        if name.rpartition(".")[2].strip("_").lower() in PARTICIPLES:
            yield name
        for node in ast.walk(module.tree):
            is_named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if is_named and node.name.strip("_").lower() in PARTICIPLES:
                yield f"{name}:{node.lineno} {node.name}"


def _short_docstrings(every: dict[str, Module]) -> Iterator[str]:
    for name, module in every.items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text is not None and len(text.split()) <= SHORT_DOCSTRING:
                    yield f"{name}:{getattr(node, 'lineno', 1)} {text!r}"


def _private_imports(every: dict[str, Module]) -> Iterator[str]:
    """Imports of a dependency's private names, and uses that a type checker was told to allow."""
    for name, module in every.items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                words = [*node.module.split("."), *(alias.name for alias in node.names)]
                if words[0] not in {"refold", "__future__"} and any(_is_private(x) for x in words):
                    yield f"{name}:{node.lineno} {node.module}"
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if any(_is_private(word) for word in alias.name.split(".")):
                        yield f"{name}:{node.lineno} {alias.name}"
        for number, line in enumerate(module.text.splitlines(), 1):
            if re.search(r"noqa: SLF001|reportPrivateUsage", line):
                yield f"{name}:{number} {line.strip()[:60]}"


def _is_private(word: str) -> bool:
    return word.startswith("_") and not word.startswith("__")


_TRIES = 3


class Trace:
    """Which files of ours run, in all threads, between `start` and `stop`."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.functions: set[tuple[str, str, int]] = set()

    def __enter__(self) -> Self:
        """Start."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        sys.setprofile(None)
        threading.setprofile(None)

    def _see(self, frame: Any, event: str, _: object) -> None:  # noqa: ANN401 - a frame
        code = frame.f_code
        if event == "call" and "/refold/" in code.co_filename:
            path = code.co_filename.rpartition("/src/refold/")[2]
            if path != code.co_filename and not path.startswith("testing/"):
                self.files.add(path)
                self.functions.add((path, code.co_qualname, code.co_firstlineno))


async def _capability() -> Trace:
    from pydantic_ai import Agent  # noqa: PLC0415 - only to trace
    from pydantic_ai.models.test import TestModel  # noqa: PLC0415 - only to trace

    from refold.integrations.pydantic_ai import Refold  # noqa: PLC0415 - only to trace

    async with Refold() as memory:
        agent = Agent(TestModel(), capabilities=[memory])
        await agent.run("hello", conversation_id="talk")
        with Trace() as trace:
            await agent.run("hello", conversation_id="talk")
    return trace


async def _gateway() -> Trace:
    import httpx2  # noqa: PLC0415 - only to trace

    from refold.service.app import application  # noqa: PLC0415 - only to trace
    from refold.service.service import Service  # noqa: PLC0415 - only to trace
    from refold.settings import load_settings  # noqa: PLC0415 - only to trace
    from refold.settings.serve import Serve  # noqa: PLC0415 - only to trace
    from refold.stores import open_store  # noqa: PLC0415 - only to trace
    from refold.testing.upstream import Reply, ScriptedUpstream  # noqa: PLC0415 - only to trace

    upstream = ScriptedUpstream(lambda _: Reply("hello"))
    asks = httpx2.AsyncClient(transport=httpx2.ASGITransport(cast("Any", upstream)))
    serve = Serve.model_validate({"upstreams": ({"name": "test", "base_url": "http://upstream"},)})
    settings = replace(load_settings("balanced"), serve=serve)
    service = Service(settings, open_store("memory:"), client=asks)
    app = application(service)
    talk = [{"role": "user", "content": "hello"}]
    body = {"model": "gpt-4o", "messages": talk}
    transport = httpx2.ASGITransport(app)
    async with (
        service,
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        first = await client.post("/v1/chat/completions", json=body)
        answer = first.json()["choices"][0]["message"]
        talk.extend([answer, {"role": "user", "content": "hello"}])
        with Trace() as trace:
            second = await client.post("/v1/chat/completions", json=body)
        managed = [each.headers.get("refold-managed") for each in (first, second)]
        if managed != ["yes", "yes"]:
            raise RuntimeError(f"The gateway did not manage the requests: {managed}")
    return trace


def traced_measures() -> list[Measure]:
    """What the second "hello" of an open conversation touches."""
    found: list[Measure] = []
    ways: dict[str, Callable[[], Any]] = {"capability": _capability, "gateway": _gateway}
    for name, way in ways.items():
        # What a service does now and then may fall into a request: it does not do so each time.
        traces = [asyncio.run(way()) for _ in range(_TRIES)]
        trace = min(traces, key=lambda one: len(one.files))
        found.append(Measure(f"files of a request, {name}", len(trace.files), (*trace.files,)))
        calls = tuple(f"{path}:{line} {title}" for path, title, line in sorted(trace.functions))
        found.append(Measure(f"functions of a request, {name}", len(calls), calls))
    return found


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 above a ceiling")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--list", metavar="MEASURE", help="print the cases of one measure")
    given = parser.parse_args()
    measures = [*static_measures(), *traced_measures()]
    if given.list:
        for measure in measures:
            if given.list in measure.name:
                print(f"# {measure.name}: {measure.value}", *sorted(measure.cases), sep="\n")
    elif given.json:
        figures = [
            {"name": one.name, "value": one.value, "ceiling": CEILINGS.get(one.name)}
            for one in measures
        ]
        print(json.dumps({"figures": figures}, indent=2))
    else:
        for one in measures:
            ceiling = CEILINGS.get(one.name)
            bound = "" if ceiling is None else f"  at most {ceiling:,}"
            print(f"{one.name:42} {one.value:>8,}{bound}{'' if one.holds else '  EXCEEDED'}")
    return int(given.check and not all(one.holds for one in measures))


if __name__ == "__main__":
    sys.exit(main())
