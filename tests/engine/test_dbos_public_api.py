"""The engine on DBOS uses what DBOS exports, and no statement of ours touches its tables."""

import ast
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

import dbos

from refold.engine import dbos as engine
from refold.engine.dbos.database import SCHEMA

FOLDER = Path(engine.__file__).parent
SOURCES = sorted(FOLDER.glob("*.py"))


def _nodes(kind):
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, kind):
                yield source.name, node


def test_only_exported_names_are_imported():
    imported = set()
    for _, node in _nodes(ast.ImportFrom):
        if (node.module or "").split(".")[0] == "dbos":
            assert node.module == "dbos", f"from {node.module} import …"
            imported |= {alias.name for alias in node.names}
    for where, node in _nodes(ast.Import):
        names = [alias.name for alias in node.names if alias.name.split(".")[0] == "dbos"]
        assert set(names) <= {"dbos"}, where
    assert {"DBOS", "DBOSClient"} <= imported <= set(dbos.__all__)


def test_nothing_of_dbos_is_reached_by_a_private_name():
    """A name with an underscore is one of our own objects: it is taken from `self`."""
    for where, node in _nodes(ast.Attribute):
        if node.attr.startswith("_") and not node.attr.startswith("__"):
            of = ast.unparse(node.value)
            row = node.attr in {"_replace", "_asdict"}
            assert row or of in {"self", "self._to", "making", "asyncio"}, (
                f"{where}: {of}.{node.attr}"
            )


def test_no_statement_names_its_tables():
    text = (FOLDER / "tables.sql").read_text(encoding="utf-8")
    assert SCHEMA not in text
    for where, node in _nodes(ast.Constant):
        if isinstance(node.value, str):
            assert SCHEMA not in node.value or where == "database.py", where
            assert "workflow_status" not in node.value, where
    for where, node in _nodes(ast.JoinedStr):
        parts = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        assert "SCHEMA" not in parts, where


def test_the_names_that_we_use_are_there():
    """A release of DBOS without one of them fails here, before any worker does."""
    for name in ("destroy", "launch", "migrate", "workflow", "workflow_id"):
        assert name in vars(dbos.DBOS), name
    for name in (
        *("delete_workflows", "destroy", "enqueue_in_transaction"),
        *("list_queues", "list_workflows", "register_queue"),
    ):
        assert callable(getattr(dbos.DBOSClient, name)), name
    assert issubclass(dbos.error.DBOSException, Exception)
