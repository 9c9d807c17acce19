"""OpenTelemetry where the library is installed alone: it may be missing, or older than 1.30."""

import ast
import sys
import tomllib

import pytest
from opentelemetry.metrics import Meter
from talks import Talk, Writer, of_500, setup
from tree_copies import ROOT

from refold.session.compaction import WAITS

SOURCE = ROOT / "src" / "refold"
EXTRA_OF = {
    "engine/dbos": "dbos",
    "integrations/pydantic_ai": "pydantic-ai",
    "service": "serve",
    "stores/postgres": "postgres",
}
"""The extra that brings OpenTelemetry to each folder that cannot do without it."""


def missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", None)


def older(monkeypatch):
    """Before 1.30 nobody could say which buckets a histogram should have."""

    def create_histogram(self, name, unit="", description=""):  # noqa: ARG001 - the API's names
        raise AssertionError(name)

    monkeypatch.setattr(Meter, "create_histogram", create_histogram)


@pytest.mark.parametrize("api", [missing, older])
async def test_without_a_usable_api_requests_wait_for_folds_and_nothing_breaks(
    api, monkeypatch, log
):
    asked = []
    installed = type(WAITS).installed
    monkeypatch.setattr(
        type(WAITS), "installed", lambda self: asked.append(installed(self)) or asked[-1]
    )
    api(monkeypatch)
    talk = await Talk.open(log, setup(window=4_000), write=Writer())
    await talk.go(*of_500(12))
    assert asked
    assert set(asked) == {None}


def test_with_a_usable_api_waits_are_measured():
    assert WAITS.installed() is WAITS.of(None)


def test_extras_bring_a_usable_api_to_whatever_imports_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    importing = {
        path.relative_to(SOURCE).parent.as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opentelemetry")
    }
    assert importing == set(EXTRA_OF)
    for extra in EXTRA_OF.values():
        assert "opentelemetry-api>=1.30" in extras[extra]
