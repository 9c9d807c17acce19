"""A cloned repository sends nothing, runs nothing and stores nothing: real processes, real sockets.

Each test works in a folder of a clone whose author is hostile (`hostile_clones`). Beside the user's
own server there is one more, which must never be reached.
"""

import json
import signal
import sys
from pathlib import Path

import httpx2
import pytest
from hostile_clones import PLANTED, REFOLD, SECRET, Clone, model_server
from lab_files import claude, claude_said, lines

OWN_STORE = "data/refold/refold.db"


@pytest.fixture
def clone(tmp_path):
    with model_server() as own, model_server() as enemy:
        yield Clone(tmp_path, own, enemy)


def own_server(clone) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{clone.own.address}/v1"}


def test_chat_asks_the_users_model_alone_and_stores_at_home(clone):
    for turn in range(4):
        done = clone.run(
            *("chat", "-p", f"Hello {turn}", "-m", "openai:gpt-small", "s"),
            **own_server(clone),
        )
        assert (done.returncode, done.stdout.strip()) == (0, "Hello from the server."), done.stderr
    clone.check_harmless()
    # What the user's own model is asked besides is a fold, which the profile that they chose makes.
    assert all("gpt-summarizer" not in request for request in clone.own.requests)
    assert (clone.home / OWN_STORE).exists()
    assert "refold trust" in done.stderr


def test_serve_passes_requests_to_the_users_upstream_with_no_key_of_theirs(clone):
    clone.configure(
        f'[[serve.upstreams]]\nname = "mine"\nbase_url = "{clone.own.address}/v1"\nkey = "pass"\n'
    )
    with clone.start(REFOLD, "serve", "--port", "0", "--json") as process:
        try:
            address = json.loads(process.stdout.readline())["address"]
            for turn in range(3):
                body = {"model": "gpt-small", "messages": [{"role": "user", "content": str(turn)}]}
                answer = httpx2.post(f"{address}/v1/chat/completions", json=body, timeout=30)
                assert answer.status_code == 200
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=60)[1]
    clone.check_harmless()
    assert sum(request.startswith("POST") for request in clone.own.requests) == 3
    assert "serve.upstreams" in said
    assert "refold trust" in said


def test_serve_without_an_upstream_of_the_user_asks_nobody_with_their_token(clone):
    with clone.start(REFOLD, "serve", "--port", "0", "--json") as process:
        try:
            address = json.loads(process.stdout.readline())["address"]
            body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
            answer = httpx2.post(f"{address}/v1/chat/completions", json=body, timeout=60)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
    clone.check_harmless()
    assert answer.status_code >= 400


def test_search_reads_the_users_store_alone(clone):
    for folder in (clone.folder, clone.inside):
        done = clone.run("search", "planted", folder=folder)
        assert PLANTED not in done.stdout
        assert "not used" in done.stderr
    listed = clone.run("sessions", folder=clone.folder)
    assert "planted" not in listed.stdout
    clone.check_harmless()


def test_lab_imports_nothing_from_the_folder(clone):
    recordings = clone.home / "recordings"
    recordings.mkdir()
    for number in range(3):
        records, parent = [], None
        for turn in range(150):
            records.append(claude("user", f"u{turn}", parent, f"Question {turn} " * 30))
            parent = f"a{turn}"
            text = {"type": "text", "text": f"Answer {turn} " * 30}
            records.append(claude_said(parent, f"u{turn}", f"m{turn}", text))
        (recordings / f"{number}.jsonl").write_bytes(lines(*records))
    done = clone.run("lab", str(recordings), "--profile", "balanced", "--policy", "naive", "--json")
    clone.check_harmless()
    assert "balanced" in done.stdout, done.stderr


_PROGRAM = """
import asyncio, sys
from contextlib import suppress
from refold.errors import FoldUnderWay
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from refold import Refold
from refold.settings import load_settings

async def main():
    settings = load_settings()
    memory = Refold(sys.argv[1], profile=settings.profile, models=settings.models)
    agent = Agent(TestModel(custom_output_text="word " * 200), capabilities=[memory])
    for turn in range(8):
        await agent.run("prompt " * 300, conversation_id="c")
    session = await memory.session("c", "test")
    with suppress(FoldUnderWay):
        await session.compact()
    await memory.close()
    print(settings.serve.upstreams[0].name, settings.profile.trim.max_chars)

asyncio.run(main())
"""


def test_the_library_asks_no_summarizer_of_theirs(clone):
    program = clone.home / "program.py"
    program.write_text(_PROGRAM)
    store = f"sqlite:///{clone.home}/own.db"
    # Whoever is asked to summarize is the enemy here: nobody may be.
    address = {"OPENAI_BASE_URL": f"{clone.enemy.address}/v1"}
    with clone.start(sys.executable, program, store, **address) as process:
        out, err = process.communicate(timeout=120)
    clone.check_harmless()
    assert out.split() == ["anthropic", "77"], err


def test_python_m_imports_nothing_from_the_folder(clone):
    with clone.start(sys.executable, "-m", "refold.cli", "sessions") as process:
        out, err = process.communicate(timeout=60)
    # Python itself puts the folder first and runs what it needs to start, before any of ours runs.
    ran = clone.marker.read_text().split() if clone.marker.exists() else []
    assert not {"typer.py", "httpx2.py", "anthropic.py"} & {Path(one).name for one in ran}, ran
    assert "Traceback" not in err, out + err


def test_an_installed_agent_is_not_taken_from_the_folder(clone):
    packages = clone.home / "packages"
    packages.mkdir()
    agent = "from pydantic_ai import Agent\nagent = Agent(name='installed')\n"
    (packages / "company_agents.py").write_text(agent)
    (clone.inside / "company_agents.py").write_text(f"open({str(clone.marker)!r}, 'w')\n")
    clone.files = clone._content()
    done = clone.run(
        *("chat", "-p", "Hello", "--agent", "company_agents:agent", "-m", "openai:gpt-small"),
        **own_server(clone),
        PYTHONPATH=str(packages),
    )
    assert done.returncode == 0, done.stderr
    clone.check_harmless()


def test_config_shows_what_was_left_out_and_trust_lets_it_apply(clone):
    shown = clone.run("config")
    left_out = shown.stdout.partition("Left out")[2]
    for key in ("summarizer", "serve.upstreams", "retention.days", "consolidate", "fold.writer"):
        assert key in left_out
    assert "refold trust" in left_out
    assert SECRET not in shown.stdout
    value = clone.run("config", "serve.upstreams")
    assert "theirs" not in value.stdout
    assert "Left out: serve.upstreams" in value.stderr

    asked = clone.run("trust")
    assert asked.returncode == 1
    assert clone.enemy.address in asked.stdout
    assert clone.run("trust", "--yes").returncode == 0
    trusted = clone.run("config", "serve.upstreams")
    assert ("theirs" in trusted.stdout, trusted.stderr) == (True, "")
    record = clone.home / "state" / "refold" / "trust.json"
    assert record.stat().st_mode & 0o777 == 0o600

    file = clone.folder / "refold.toml"
    before = file.read_bytes()
    file.write_bytes(before + b"# pulled\n")
    changed = clone.run("config", "serve.upstreams")
    assert "theirs" not in changed.stdout
    assert "changed since you trusted it" in changed.stderr
    file.write_bytes(before)
    assert "theirs" in clone.run("config", "serve.upstreams").stdout

    assert str(file) in clone.run("trust", "list").stdout
    assert clone.run("trust", "remove").returncode == 0
    assert "theirs" not in clone.run("config", "serve.upstreams").stdout
