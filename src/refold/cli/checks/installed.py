"""What is installed."""

import platform
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from refold import __version__
from refold.cli.checks.row import Row, ok, warning

_EXTRAS = {
    "chat": (
        ("pydantic_ai", "pydantic-ai-slim"),
        ("prompt_toolkit", "prompt-toolkit"),
        ("mcp", "mcp"),
    ),
    "models": (("genai_prices", "genai-prices"), ("rs_bpe", "rs-bpe")),
}
_FOR = {"chat": "`refold chat`", "models": "exact counts of tokens, windows and prices"}

Missing = Callable[[str], bool]


def _missing(module: str) -> bool:
    return find_spec(module) is None


def installed(missing: Missing = _missing) -> Iterator[Row]:
    """Python, Refold, and what its extras bring."""
    yield ok("python", f"{platform.python_version()} at {sys.executable}")
    yield ok("refold", __version__)
    for extra, packages in _EXTRAS.items():
        lacking = [name for module, name in packages if missing(module)]
        if lacking:
            yield warning(
                f"extra {extra}",
                f"{', '.join(lacking)} not installed; needed for {_FOR[extra]}",
                f'pip install "refold[{extra}]"',
            )
        else:
            found = ", ".join(f"{name} {_version(name)}" for _, name in packages)
            yield ok(f"extra {extra}", found)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"
