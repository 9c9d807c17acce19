"""After a forget, the words stand in no table of the database: Refold's, DBOS's, or a new one."""

# ruff: noqa: F811, F401 - fixtures are imported

from urllib.parse import urlsplit

import psycopg
import pytest

pytest.importorskip("dbos", reason="the extra `dbos` is not installed")

from dbos_servers import dbos, dbos_address
from service_processes import SlowModel, folds_of, refold_over, talk, talk_until_it_folds, until
from word_scan import tables_with

from refold.testing.upstream import Refusal, Reply

WORD = "xylographerquixotry"


class TellingModel(SlowModel):
    """A summarizer that repeats the word, and whose errors do."""

    refuses = False

    async def _reply(self, got):
        reply = await super()._reply(got)
        if self.refuses:
            return Refusal(
                400, {"error": {"message": f"I will not speak of {WORD}.", "code": WORD}}
            )
        summary = reply.text.startswith("## ")
        return Reply(f"{reply.text}- The {WORD} is counted. [2]\n" if summary else reply.text)


async def fold_refused(client, session, model):
    """A fold whose model says no, with the word in its reason."""
    model.refuses = True
    answer = await client.post(f"/api/v1/sessions/{session}/folds", json={})
    assert answer.status_code == 200, answer.text
    model.refuses = False


async def fold_done(client, session):
    """Wait until a fold of the session stands."""

    async def stands():
        return [one for one in await folds_of(client, session) if one["state"] == "stands"]

    await until(stands)


async def test_no_table_has_the_words(dbos, dbos_address, tmp_path):
    """Of a span, nor of a whole session, each with a fold by a worker and one that failed."""
    everything = dbos.address(urlsplit(dbos_address).path.lstrip("/"))
    model = TellingModel()
    async with refold_over(tmp_path, dbos_address, model) as refold:
        _, client = await refold.serve()
        messages, long = await talk_until_it_folds(client, word=WORD)
        await fold_done(client, long)
        await talk(client, 1, messages, word=WORD)
        await fold_refused(client, long, model)
        _, short = await talk(client, 4, word=f"other {WORD}")
        await fold_refused(client, short, model)
        held = tables_with(everything, WORD)
        assert any("entries" in one for one in held), "the scan can find it"
        assert not any("refold_dbos" in one for one in held), held
        await refold.run("forget", long, "--yes", "--span", "1-1000000")
        assert tables_with(everything, WORD), "the other session has it still"
        await refold.run("forget", short, "--yes")
        assert tables_with(everything, WORD) == []
        found = await client.get("/api/v1/search", params={"query": WORD})
        assert (found.status_code, found.json()["found"]) == (200, [])


async def test_a_table_that_nobody_knows_is_looked_at(dbos, dbos_address):
    """The scan finds the word in any column of any table, or it would prove nothing."""
    everything = dbos.address(urlsplit(dbos_address).path.lstrip("/"))
    columns = {
        "text": f"'{WORD}'",
        "jsonb": f"""'{{"a": ["{WORD}"]}}'""",
        "bytea": f"'\\x00ff{WORD.encode().hex()}'",
        "text[]": f"ARRAY['{WORD}']",
        "bytea[]": f"ARRAY['{WORD}'::bytea]",
    }
    with psycopg.connect(everything, autocommit=True) as db:
        db.execute("CREATE SCHEMA elsewhere")
        for number, (kind, value) in enumerate(columns.items()):
            db.execute(f"CREATE TABLE elsewhere.t{number} AS SELECT {value}::{kind} AS c")
        assert tables_with(everything, WORD) == [f"elsewhere.t{n}.c" for n in range(len(columns))]
        db.execute("DROP SCHEMA elsewhere CASCADE")
        db.execute(
            "INSERT INTO refold_dbos.workflow_output (workflow_uuid, output) VALUES ('x', %s)",
            [WORD],
        )
    assert tables_with(everything, WORD) == ["refold_dbos.workflow_output.output"]


async def test_no_file_of_sqlite_has_the_words(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    model = TellingModel()
    async with refold_over(tmp_path, f"sqlite:///{store / 'refold.db'}", model) as refold:
        _, client = await refold.serve()
        _, session = await talk_until_it_folds(client, word=WORD)
        await fold_done(client, session)
        await fold_refused(client, session, model)

        def holding():
            files = [one for one in tmp_path.rglob("*") if one.is_file()]
            return [one for one in files if WORD.encode() in one.read_bytes()]

        assert holding()
        assert (await client.delete(f"/api/v1/sessions/{session}")).status_code == 200
        assert holding() == []
