"""Statements live in `.sql` files, each under a line `-- name: …`."""

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def statements(package: str, file: str) -> dict[str, str]:
    """The named statements of one file."""
    _, *parts = _NAME.split(files(package).joinpath(file).read_text(encoding="utf-8"))
    return {
        name: text.strip().removesuffix(";")
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }
