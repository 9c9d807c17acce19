"""Writes docs/reference/http.md from the API's own OpenAPI document.

With --check it writes nothing and exits with 1 if the page is out of date.
"""

import sys
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from reference import table, write_or_check

from refold.service.api.router import ERRORS, router

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "http.md"


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document of the API."""
    app = FastAPI(title="Refold", version="1")
    app.include_router(router)
    return app.openapi()


def render() -> str:
    """The whole page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "<!-- Made by tools/http_reference.py from the OpenAPI document: do not edit. -->"
    yield "# The HTTP API\n"
    yield "`refold serve` answers under `/api/v1`; programs read `/api/v1/openapi.json` instead."
    yield "A key goes into `Authorization: Bearer rfk_…`. A key's roles determine what it may"
    yield "do: each route below names the one that it needs, and `admin` may do everything."
    yield "A name in a path is percent-encoded, a slash in it as `%2F`; `.` and `..` cannot be"
    yield "written so. Times are ISO 8601.\n"
    operations = [
        (told["tags"][0], method.upper(), path, told)
        for path, methods in document()["paths"].items()
        for method, told in methods.items()
    ]
    for tag, group in groupby(sorted(operations, key=_order), key=lambda one: one[0]):
        yield f"## {tag.capitalize()}\n"
        for _, method, path, told in group:
            yield from _operation(method, path, told)
    yield from _objects()
    yield from _errors()


def _order(operation: tuple[str, str, str, dict[str, Any]]) -> int:
    """Subjects in the order in which the router has them."""
    order: list[str] = []
    for methods in document()["paths"].values():
        order += [one["tags"][0] for one in methods.values()]
    return order.index(operation[0])


def _operation(method: str, path: str, told: dict[str, Any]) -> Iterator[str]:
    yield f"### {told['summary']}\n"
    yield f"```text\n{method} {path}\n```\n"
    yield f"{told['description']} Role: `{told['x-role']}`. Id: `{told['operationId']}`.\n"
    given = [
        (f"`{one['name']}`", one["in"], one.get("description", ""), _default(one["schema"]))
        for one in told.get("parameters", ())
    ]
    if given:
        yield from table(("parameter", "in", "", "default"), given)
    if "requestBody" in told:
        yield from _fields(told["requestBody"]["content"]["application/json"]["schema"])
    yield from _answers(told["responses"])


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    found = _named(schema)
    needed = set(found.get("required", ()))
    rows = [
        (
            f"`{name}`",
            _type(one),
            one.get("description", ""),
            "needed" if name in needed else _default(one),
        )
        for name, one in found["properties"].items()
    ]
    yield from table(("in the body", "type", "", "default"), rows)


def _answers(responses: dict[str, Any]) -> Iterator[str]:
    for status, one in responses.items():
        if int(status) in ERRORS:
            continue
        for kind, content in one.get("content", {}).items():
            schema = content.get("schema", {})
            what = _type(schema) if schema.get("$ref") else "a body"
            yield f"Answers {status} with {what} as `{kind}`."
    yield ""


def _objects() -> Iterator[str]:
    yield "## Objects\n"
    for name, schema in sorted(document()["components"]["schemas"].items()):
        if name in _bodies() or "properties" not in schema:
            continue
        yield f"### {name}\n"
        yield f"{' '.join(schema['description'].split())}\n"
        rows = schema["properties"].items()
        yield from table(
            ("field", "type", ""),
            [(f"`{one}`", _type(told), told.get("description", "")) for one, told in rows],
        )


def _bodies() -> set[str]:
    """The objects that are shown where they are sent."""
    given = (
        told["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        for methods in document()["paths"].values()
        for told in methods.values()
        if "requestBody" in told
    )
    return {one.rpartition("/")[2] for one in given}


def _errors() -> Iterator[str]:
    yield "## Errors\n"
    yield "Every error is `application/problem+json`: `detail` says what happened, `fix` what to"
    yield "do, and `code` is one of [the errors](errors.md), for programs.\n"
    yield from table(
        ("status", "meaning"),
        [(str(status), one["description"]) for status, one in ERRORS.items()],
    )


def _named(schema: dict[str, Any]) -> dict[str, Any]:
    return document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema and "properties" in _named(schema):
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return schema.get("format") or schema.get("type") or "any JSON"


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    return "" if value is None else f"`{str(value).lower() if value in (True, False) else value}`"


def main() -> int:
    """The command line."""
    return write_or_check(PAGE, render, "http_reference.py")


if __name__ == "__main__":
    sys.exit(main())
