"""`refold doctor` on every kind of store: what it finds, and that doing what it says helps."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json
import os
import pwd
import shlex
import subprocess

import psycopg
import pytest
from needed import APP_ROLE, EMPTY_STORE, need_postgres
from refold_commands import keep, quick, terminal

from refold.cli import doctor
from refold.stores.postgres import migrate
from refold.stores.postgres.migrate import shipped
from refold.testing.postgres import Cluster

pytest.importorskip("genai_prices")

PASSWORD = "hunter2-do-not-show"  # noqa: S105 - what must never be seen


def rows(terminal, address, *more, code, **options):
    """What the real command says of the store, and that it tells no password."""
    done = terminal.run("doctor", "--json", "--store", address, *more, **options)
    assert done.returncode == code, done
    plain = terminal.run("doctor", "--store", address, *more, **options)
    for text in (done.stdout, done.stderr, plain.stdout, plain.stderr):
        assert PASSWORD not in text
    return {row["name"]: row for row in json.loads(done.stdout)}


def problem(terminal, address, *more, **options):
    row = rows(terminal, address, *more, code=1, **options)["store"]
    assert row["verdict"] == "problem", row
    assert "chmod" not in row["remedy"] or not address.startswith("postgresql"), row
    assert row["remedy"], row
    return row["found"], row["remedy"]


def test_a_server_that_is_there_is_well(terminal, postgres, postgres_address):
    found = rows(terminal, postgres_address, code=0)
    assert found["store"]["verdict"] == "ok"
    assert f"127.0.0.1:{postgres.port}/" in found["store"]["found"]
    assert f"schema {len(shipped())}, as {APP_ROLE}" in found["store"]["found"]
    assert (found["folds"]["verdict"], found["clock"]["verdict"]) == ("ok", "ok")
    assert not {"disk", "place", "tenants"} & found.keys()


def test_a_role_that_may_do_everything_is_a_warning(terminal, postgres, postgres_database):
    found = rows(terminal, postgres.address(postgres_database), code=0)
    assert found["store"]["verdict"] == "ok"
    assert found["tenants"]["verdict"] == "warning"
    assert "refold store migrate --role" in found["tenants"]["remedy"]


def test_a_server_that_is_down(terminal):
    address = f"postgresql://app:{PASSWORD}@127.0.0.1:1/refold"
    found, remedy = problem(terminal, address)
    assert "cannot be reached" in found
    assert "Check that the server runs" in remedy


def test_a_database_that_is_missing_is_made_as_it_says(terminal, postgres):
    address = postgres.address("not_made_yet")
    found, remedy = problem(terminal, address)
    assert "no such database" in found
    command = shlex.split(remedy.split("`")[1])
    try:
        postgres.run(command[0], "-U", "refold_owner", *command[1:])
        found, remedy = problem(terminal, address)
        assert "is not a store yet" in found
        assert "refold store migrate" in remedy
        terminal.does("store", "migrate", "--store", address)
        assert rows(terminal, address, code=0)["store"]["verdict"] == "ok"
    finally:
        postgres.drop("not_made_yet")


def test_a_schema_that_is_out_of_date(terminal, postgres):
    address = postgres.database("out_of_date")
    try:
        asyncio.run(migrate(address, 2, migrations=shipped()[:3]))
        found, remedy = problem(terminal, address)
        assert f"has schema 3; this Refold needs {len(shipped())}" in found
        assert "refold store migrate" in remedy
        terminal.does("store", "migrate", "--store", address)
        assert rows(terminal, address, code=0)["store"]["verdict"] == "ok"
    finally:
        postgres.drop("out_of_date")


def test_a_role_without_rights_is_let_in_as_it_says(terminal, postgres, postgres_database):
    postgres.execute("DROP ROLE IF EXISTS stranger")
    postgres.execute("CREATE ROLE stranger LOGIN")
    address = postgres.address(postgres_database, user="stranger")
    found, remedy = problem(terminal, address)
    assert "refuses this role" in found
    assert "refold store migrate --role" in remedy
    owner = postgres.address(postgres_database)
    terminal.does("store", "migrate", "--store", owner, "--role", "stranger")
    assert rows(terminal, address, code=0)["store"]["verdict"] == "ok"
    postgres.execute("REVOKE INSERT ON refold.entries FROM stranger", postgres_database)
    found, remedy = problem(terminal, address)
    assert "may not write entries" in found
    command = shlex.split(remedy.partition(": ")[2])
    assert command[:3] == ["refold", "store", "migrate"]
    terminal.does(*command[1:], "--store", owner)
    assert rows(terminal, address, code=0)["store"]["verdict"] == "ok"
    terminal.does("store", "migrate", "--store", owner, "--role", "stranger", "--bind", "acme")
    found, remedy = problem(terminal, address)
    assert "tenant 'acme' alone, not 'default'" in found
    assert "--tenant acme" in remedy
    assert rows(terminal, address, "--tenant", "acme", code=0)["store"]["verdict"] == "ok"
    postgres.execute("DROP OWNED BY stranger", postgres_database)
    postgres.execute("DROP ROLE stranger")


def test_a_database_that_is_read_only(terminal, postgres, postgres_database, postgres_address):
    postgres.execute(f'ALTER DATABASE "{postgres_database}" SET default_transaction_read_only = on')
    found, remedy = problem(terminal, postgres_address)
    assert "not written" in found
    assert "primary" in remedy


def test_a_wrong_password_is_refused_and_never_shown(terminal):
    need_postgres()
    with Cluster() as server:
        address = server.database(EMPTY_STORE)
        server.execute(f"CREATE ROLE {APP_ROLE} LOGIN PASSWORD '{PASSWORD}'")
        asyncio.run(migrate(address, 2, roles=[APP_ROLE]))
        rules = f"host all {APP_ROLE} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        (server.data / "pg_hba.conf").write_text(rules)
        server.execute("SELECT pg_reload_conf()")
        place = f"127.0.0.1:{server.port}/{EMPTY_STORE}"
        found, remedy = problem(terminal, f"postgresql://{APP_ROLE}:{PASSWORD}-no@{place}")
        assert "does not let us in" in found
        assert "Check the user and the password" in remedy
        good = f"postgresql://{APP_ROLE}:{PASSWORD}@{place}"
        assert rows(terminal, good, code=0)["store"]["verdict"] == "ok"
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(f"postgresql://{APP_ROLE}:wrong@{place}")


@pytest.mark.parametrize(
    ("address", "says", "advice"),
    [
        ("memory:", "in memory", "--store sqlite:///"),
        ("sqlite:///", "is no store's address", "sqlite:///path/to/file.db"),
        (f"mysql://me:{PASSWORD}@host/db", "is no store's address", "postgresql://"),
        (f"postgresql://me:{PASSWORD}@@host/db", "not one of PostgreSQL", "need a %"),
        ("sqlite:///.", "is a folder", "Name a file"),
    ],
)
def test_an_address_that_is_none(terminal, address, says, advice):
    found, remedy = problem(terminal, address)
    assert says in found
    assert advice in remedy


def test_a_folder_that_is_missing_is_made_as_it_says(terminal):
    found, remedy = problem(terminal, "sqlite:///in here/refold.db")
    assert "there is no folder in here" in found
    subprocess.run(shlex.split(remedy), cwd=terminal.folder, check=True)
    row = rows(terminal, "sqlite:///in here/refold.db", code=0)["store"]
    assert "is made when it is first needed" in row["found"]
    assert rows(terminal, "", code=0)["store"]["verdict"] == "ok"


@pytest.mark.parametrize("closed", ["refold.db", "."])
def test_a_file_that_cannot_be_written_is_opened_as_it_says(tmp_path, closed):
    asyncio.run(keep(tmp_path / "refold.db", "s"))
    # Nothing keeps root out, so root looks as nobody.
    user = os.geteuid() or pwd.getpwnam("nobody").pw_uid
    for path in (tmp_path, *tmp_path.iterdir()):
        os.chown(path, user, -1)
    for above in tmp_path.parents[:3]:
        above.chmod(above.stat().st_mode | 0o055)
    path = tmp_path / closed
    path.chmod(0o500 if path.is_dir() else 0o400)

    def look():
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setuid(user)
                [row, *_] = asyncio.run(doctor.stored(f"sqlite:///{tmp_path}/refold.db", "default"))
                os.write(write, json.dumps(row._asdict()).encode())
            finally:
                os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        with os.fdopen(read) as pipe:
            return json.loads(pipe.read())

    row = look()
    assert row["verdict"] == "problem", row
    assert "cannot be written" in row["found"]
    command = shlex.split(row["remedy"])
    assert command[0] == "chmod"
    subprocess.run(command, check=True)
    assert look()["verdict"] == "ok"
