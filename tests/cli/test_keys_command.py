"""`refold keys` and `refold serve`, as they are typed."""

import json
import os
import signal
import subprocess
import sys

import httpx2
import pytest
import typer
from typer.testing import CliRunner

from refold.cli.keys import keys
from refold.cli.serve import _greeting
from refold.errors import InvalidSetting
from refold.service.vault import new_master_key
from refold.settings import load_settings

SERVE = "import typer; from refold.cli.serve import serve; typer.run(serve)"


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFOLD_STORE", f"sqlite:///{tmp_path / 'refold.db'}")
    monkeypatch.setenv("REFOLD_MASTER_KEY", new_master_key())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def typed(*arguments, code=0, given=None):
    done = CliRunner().invoke(keys, list(arguments), input=given)
    assert done.exit_code == code, done.output
    return done


def test_a_key_from_its_beginning_to_its_end():
    said = typed("list", code=1).output
    assert "--store" in said  # there is no store yet
    secret = typed("create", "--tenant", "acme", "--role", "use", "--name", "x").stdout.strip()
    assert secret.startswith("rfk_")
    [row] = json.loads(typed("list", "--json").stdout)
    assert (row["tenant"], row["roles"], row["state"]) == ("acme", ["use"], "active")
    assert row["id"] in typed("list", "--tenant", "acme").stdout
    assert "no key" in typed("list", "--tenant", "other").stdout
    rotated = json.loads(typed("rotate", row["id"], "--overlap", "0", "--json").stdout)
    assert rotated["secret"] not in (secret, "")
    assert "revoked" in typed("revoke", row["id"]).stdout
    assert secret not in typed("list").stdout
    assert json.loads(typed("list", "--json").stdout)[0]["state"] == "revoked"
    assert "error[invalid-input]" in typed("rotate", row["id"], code=1).output
    assert "refold keys list" in typed("revoke", "nothing", code=1).output
    assert "no role 'boss'" in typed("create", "--role", "boss", code=2).output
    assert json.loads(typed("create", "--days", "2", "--json").stdout)["until"]


def test_a_quota_is_shown_and_only_what_is_named_changes():
    assert (
        "2,000 tokens, cost as in" in typed("quota", "--tenant", "acme", "--tokens", "2000").stdout
    )
    assert (
        "2,000 tokens, $20.00 (before" in typed("quota", "--tenant", "acme", "--cost", "20").stdout
    )
    shown = typed("quota", "--tenant", "acme").stdout
    assert shown == "Tenant acme, a day: 2,000 tokens, $20.00.\n"
    assert "no limit of tokens" in typed("quota", "--tenant", "acme", "--tokens", "0").stdout
    typed("quota", "--tenant", "acme", "--default")
    assert json.loads(typed("quota", "--tenant", "acme", "--json").stdout)["cost"] is None


def test_a_quota_for_an_unknown_tenant_is_set_and_said():
    done = typed("quota", "--tenant", "amce", "--tokens", "2000")
    assert "No key and no session is of the tenant 'amce' yet" in done.stderr
    assert done.stdout.startswith("Tenant amce, a day: 2,000 tokens")
    typed("create", "--tenant", "acme")
    assert "No key" not in typed("quota", "--tenant", "acme", "--tokens", "2000").stderr


def test_providers_keys_are_never_shown():
    typed("upstream", "set", "openai", "--tenant", "acme", given="sk-secret-1\n")
    shown = typed("upstream", "list").output
    assert "openai" in shown
    assert "sk-secret" not in shown
    [row] = json.loads(typed("upstream", "list", "--json").stdout)
    assert (row["tenant"], row["upstream"]) == ("acme", "openai")
    os.environ["REFOLD_MASTER_KEY"] = f"{new_master_key()},{os.environ['REFOLD_MASTER_KEY']}"
    assert json.loads(typed("upstream", "reseal", "--json").stdout) == {"resealed": 1}
    os.environ["REFOLD_MASTER_KEY"] = os.environ["REFOLD_MASTER_KEY"].partition(",")[0]
    assert json.loads(typed("upstream", "reseal", "--json").stdout) == {"resealed": 0}
    typed("upstream", "remove", "openai", "--tenant", "acme")
    assert typed("upstream", "list").stdout == "No key of a provider is kept.\n"


def test_without_a_master_key_it_says_what_to_do(monkeypatch):
    monkeypatch.delenv("REFOLD_MASTER_KEY")
    said = typed("upstream", "set", "openai", code=1, given="sk-1\n").output
    assert "error[master-key]" in said
    assert "refold keys master-key" in said
    monkeypatch.setenv("REFOLD_MASTER_KEY", typed("master-key").stdout.strip())
    typed("upstream", "set", "openai", given="sk-1\n")
    assert "not a provider's key" in typed("upstream", "set", "x", code=1, given="\n").output


def test_a_quota_is_set():
    said = typed("quota", "--tenant", "acme", "--tokens", "1000", "--json").stdout
    assert json.loads(said) == {"tenant": "acme", "tokens": 1000, "cost": None}


def own_file(folder, monkeypatch):
    """The user's own file of settings: from a project's, none of `serve` counts."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    path = folder / "config" / "refold" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[serve]\nport = 99999", "serve.port"),
        ("[serve]\nprot = 1", "Did you mean serve.port?"),
        ("[serve.limits]\nstreams = -1", "serve.limits.streams"),
        ('[[serve.upstreams]]\nname = "a"\nbase_url = "ftp://a"', "serve.upstreams[0]"),
        (
            '[[serve.upstreams]]\nname = "a"\nbase_url = "http://a"\nkey = "sk-secret-1"',
            "name of an environment variable",
        ),
    ],
)
def test_wrong_settings_say_which_and_show_no_key(tmp_path, monkeypatch, text, words):
    own_file(tmp_path, monkeypatch).write_text(text)
    with pytest.raises(InvalidSetting) as raised:
        load_settings()
    assert words in str(raised.value)
    assert "sk-secret-1" not in str(raised.value)


def test_settings_of_serve_come_from_files_and_variables(tmp_path, monkeypatch):
    own_file(tmp_path, monkeypatch).write_text(
        "[serve]\nport = 1\n[serve.times]\ndrain = 2\n"
        '[[serve.upstreams]]\nname = "a"\nbase_url = "http://a"\nmodels = ["m-*"]\n'
    )
    monkeypatch.setenv("REFOLD_SERVE__PORT", "7")
    settings = load_settings()
    assert (settings.serve.port, settings.serve.times.drain) == (7, 2)
    assert [one.name for one in settings.serve.upstreams] == ["a"]
    assert str(settings.sources["serve.port"]) == "REFOLD_SERVE__PORT"
    assert settings.value("serve.times.drain") == 2


def test_it_serves_until_it_is_told_to_stop():
    command = [sys.executable, "-c", SERVE, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            assert told["keys"] is False
            ready = httpx2.get(f"{told['address']}/readyz", timeout=30)
            assert ready.json() == {"status": "ready", "store": "available"}
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert b"GET /readyz 200" in errors
    assert b"Traceback" not in errors


def test_it_does_not_listen_elsewhere_without_a_key():
    app = typer.Typer()
    from refold.cli.serve import serve  # noqa: PLC0415 - only here

    app.command()(serve)
    done = CliRunner().invoke(app, ["--host", "0.0.0.0", "--port", "0"])  # noqa: S104 - refused
    assert done.exit_code == 1
    assert "refold keys create" in done.output


def test_with_keys_the_greeting_says_how_to_sign_in_to_the_console():
    where = "http://127.0.0.1:8790"
    console = f"Console: {where}/console"
    assert f"{console} (sign in there with a key" in _greeting(where, f"{where}/console", keys=True)
    assert f"{console}/open?token=x\n" in _greeting(
        where, f"{where}/console/open?token=x", keys=False
    )
