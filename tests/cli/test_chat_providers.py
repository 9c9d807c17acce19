"""Which model a chat talks with, and what is said when there is none."""

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.cli.chat.models import local_servers, providers
from refold.cli.chat.models.local_servers import running_here, server_at
from refold.cli.chat.models.providers import (
    PROVIDERS,
    Choice,
    chosen_model,
    keys_found,
    known_models,
    model_of,
)
from refold.errors import InvalidInput, NoModel, RefoldError
from refold.models import ModelSettings, facts_of
from refold.settings import Settings
from refold.view.profiles import BALANCED

pytest.importorskip("pydantic_ai")

PLAIN = Settings(BALANCED, {}, {})
SECRET = "sk-do-not-show-4711"  # noqa: S105 - what must never be seen
LLAMA = {"/v1/models": {"data": [{"id": "smollm2", "meta": {"n_ctx_train": 8192}}]}}
PROPS = {"/props": {"default_generation_settings": {"n_ctx": 2048}}}


@contextmanager
def serving(pages: dict[str, Any], seen: list[str | None] | None = None):
    """A server on this machine that answers with these pages; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if seen is not None:
                seen.append(self.headers["Authorization"])
            page = pages.get(self.path, 404)
            status, page = (page, {}) if isinstance(page, int) else (200, page)
            body = page if isinstance(page, bytes) else json.dumps(page).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):  # noqa: A002 - the library's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def key_of(model: Any) -> str:
    return model.client.api_key


def port_of(url: str) -> int:
    return int(url.removesuffix("/v1").rpartition(":")[2])


@pytest.fixture
def here(monkeypatch):
    """Which servers answer on the well-known ports: none, unless told."""

    def answer(*urls: str):
        ports = {port_of(url): "llama.cpp" for url in urls}
        monkeypatch.setattr(providers, "running_here", lambda: running_here(ports))
        monkeypatch.setattr(local_servers, "WELL_KNOWN", ports)

    answer()
    return answer


@pytest.mark.usefixtures("here")
def test_what_was_asked_for_goes_before_all_else():
    environ = {"REFOLD_MODEL": "openai:gpt-5", "ANTHROPIC_API_KEY": SECRET}
    assert chosen_model("groq:x", PLAIN, environ) == Choice("groq:x", "you asked for it")
    assert chosen_model(None, PLAIN, environ) == Choice("openai:gpt-5", "REFOLD_MODEL names it")
    del environ["REFOLD_MODEL"]
    chosen = chosen_model(None, PLAIN, environ)
    assert chosen.why == "ANTHROPIC_API_KEY is set"
    assert chosen.name.startswith("anthropic:claude-")


@pytest.mark.filterwarnings("ignore:invalid escape sequence")  # in a provider's own package
@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda one: one.name)
@pytest.mark.usefixtures("here")
def test_any_key_will_do(provider):
    for key in provider.keys:
        chosen = chosen_model(None, PLAIN, {"ANTHROPIC_API_KEY": "  ", key: SECRET})
        assert chosen == Choice(f"{provider.name}:{provider.default}", f"{key} is set")
        assert keys_found({key: SECRET}) == [key]
        price = facts_of(chosen.name).prices.input
        assert price is not None, "a default whose price is known"
        if not provider.installed:
            with pytest.raises(NoModel, match=rf"pydantic-ai-slim\[{provider.name}\]"):
                model_of(chosen, {key: SECRET})
            continue
        made = model_of(chosen, {key: SECRET})
        assert made.model_name == provider.default
        with pytest.raises(NoModel, match=f"export {provider.keys[0]}=") as raised:
            model_of(chosen, {})
        assert SECRET not in str(raised.value) + repr(chosen)


def test_defaults_are_models_that_pydantic_ai_knows():
    from pydantic_ai.models import known_model_names  # noqa: PLC0415 - only here

    known = known_model_names()
    defaults = [f"{one.name}:{one.default}" for one in PROVIDERS]
    listed = {name.partition(":")[0] for name in known}
    assert [
        name for name in defaults if name not in known and name.partition(":")[0] in listed
    ] == []


@pytest.mark.usefixtures("here")
def test_one_that_is_installed_goes_before_one_that_is_not():
    environ = {"GROQ_API_KEY": SECRET, "DEEPSEEK_API_KEY": SECRET}
    groq = next(one for one in PROVIDERS if one.name == "groq")
    expected = "groq:" if groq.installed else "deepseek:"
    assert chosen_model(None, PLAIN, environ).name.startswith(expected)


def test_a_server_of_this_machine_is_found_where_nothing_is_configured(here):
    with serving(LLAMA | PROPS) as url:
        here(url)
        chosen = chosen_model(None, PLAIN, {})
        assert (chosen.name, chosen.base_url, chosen.window) == ("local:smollm2", url, 2048)
        assert chosen.why == f"llama.cpp answers at {url}"
        made = model_of(chosen, {"OPENAI_API_KEY": SECRET})
        assert made.model_id == "local:smollm2"
        assert made.context_window == 2048
        assert (made.base_url or "").rstrip("/") == url
        own = Settings(BALANCED, {"smollm2": ModelSettings(window=512)}, {})
        assert chosen_model("local", own, {}).window == 512


@pytest.mark.parametrize(
    ("pages", "models", "windows"),
    [
        (
            {"/v1/models": {"data": [{"id": "qwen", "max_model_len": 32768}]}},
            ("qwen",),
            {"qwen": 32768},
        ),
        (
            {"/v1/models": {"data": [{"id": "/models/Qwen3-4B.gguf"}]}} | PROPS,
            ("Qwen3-4B",),
            {"Qwen3-4B": 2048},
        ),
        ({"/v1/models": {"data": [{"id": "a", "meta": {"n_ctx": 4096}}]}}, ("a",), {"a": 4096}),
        (
            {
                "/v1/models": {"data": [{"id": "text-embedding-x"}, {"id": "b"}, {"id": "c"}]},
                "/api/v0/models": {"data": [{"id": "b"}, {"id": "c", "loaded_context_length": 9}]},
            },
            ("c", "b"),
            {"c": 9},
        ),
        (
            {
                "/v1/models": {"data": [{"id": "b:latest"}, {"id": "c:1b"}]},
                "/api/ps": {"models": [{"name": "c:1b", "context_length": 4096}]},
            },
            ("c:1b", "b:latest"),
            {"c:1b": 4096},
        ),
    ],
    ids=["vLLM", "llama.cpp, its file", "llama.cpp", "LM Studio", "Ollama"],
)
def test_each_server_tells_its_window_in_its_own_way(pages, models, windows):
    with serving(pages) as url:
        found = server_at(url)
    assert (found.models, found.windows) == (models, windows)


@pytest.mark.parametrize(
    "page", [b"<html>", b"[1]", b"{}", b'{"data": 5}', b'{"data": [5, {"id": 7}]}', b"[" * 99_999]
)
def test_another_program_on_the_port_is_no_server(page, here):
    with serving({"/v1/models": page}) as url:
        here(url)
        with pytest.raises(NoModel, match="refold demo"):
            chosen_model(None, PLAIN, {})
        with pytest.raises(NoModel, match=r"lists no models|no model to talk with"):
            server_at(url)


@pytest.mark.parametrize(
    ("status", "key", "said", "fix"),
    [
        (401, None, "asks for a key", "export OPENAI_BASE_URL={url} OPENAI_API_KEY="),
        (403, SECRET, "refuses the key", "export OPENAI_BASE_URL={url} OPENAI_API_KEY="),
        (404, None, "lists no models", "-m openai:NAME --base-url {url}"),
        (503, None, "not ready: it answered 503", "Try again when its model is loaded"),
    ],
)
def test_a_named_server_without_a_list_says_why(status, key, said, fix):
    with serving({"/v1/models": status}) as url:
        with pytest.raises(NoModel, match=said) as raised:
            server_at(url, key)
        assert fix.format(url=url) in raised.value.fix
        assert SECRET not in str(raised.value)
    with pytest.raises(NoModel, match="No model server answers"):
        server_at(url, key)


@pytest.mark.usefixtures("here")
def test_nothing_at_all_says_three_ways_out():
    with pytest.raises(NoModel) as raised:
        chosen_model(None, PLAIN, {"ANTHROPIC_API_KEY": ""})
    assert raised.value.code == "no-model"
    for way in ("ANTHROPIC_API_KEY", "-m local --base-url http", "refold demo"):
        assert way in raised.value.fix


@pytest.mark.usefixtures("here")
def test_a_server_is_named_in_one_way():
    two = {"/v1/models": {"data": [{"id": "first"}, {"id": "second:latest"}]}}
    with serving(two) as url:
        assert chosen_model("local", PLAIN, {}, base_url=url).name == "local:first"
        assert chosen_model(None, PLAIN, {}, base_url=url).name == "local:first"
        assert chosen_model("local:second", PLAIN, {}, base_url=url).name == "local:second:latest"
        assert chosen_model("local", PLAIN, {"OPENAI_BASE_URL": url}).base_url == url
        bare = url.removesuffix("/v1")
        assert chosen_model(None, PLAIN, {"OLLAMA_BASE_URL": bare}).base_url == url
        assert model_of(chosen_model("openai:x", PLAIN, {"OPENAI_BASE_URL": url}), {}).model_name
        with pytest.raises(NoModel, match="There are: first, second:latest"):
            chosen_model("local:third", PLAIN, {}, base_url=url)
        with pytest.raises(InvalidInput, match="--base-url http"):
            chosen_model(url, PLAIN, {})
        with pytest.raises(InvalidInput, match="leave --base-url out"):
            chosen_model("anthropic:x", PLAIN, {}, base_url=url)
    with pytest.raises(NoModel, match="No local server answers"):
        chosen_model("local", PLAIN, {})
    for wrong in ("nonsense", "http://", "ftp://x/v1", "http://127.0.0.1:99999/v1", "http://[/"):
        with pytest.raises(InvalidInput, match="address"):
            chosen_model("local", PLAIN, {}, base_url=wrong)


def test_a_key_goes_only_to_the_server_that_it_belongs_to(here):
    seen: list[str | None] = []
    environ = {"OPENAI_API_KEY": SECRET}
    with serving(LLAMA, seen) as url:
        here(url)
        server_at(url)
        chosen_model("local", PLAIN, environ)
        chosen = chosen_model("local", PLAIN, environ, base_url=url)
        assert set(seen) == {None}
        assert key_of(model_of(chosen, environ)) != SECRET
        environ["OPENAI_BASE_URL"] = url
        chosen = chosen_model(None, PLAIN, environ)
        assert chosen.name == "local:smollm2"
        assert f"Bearer {SECRET}" in seen
        assert key_of(model_of(chosen, environ)) == SECRET
        assert SECRET not in repr(chosen)


def test_an_address_is_shown_without_the_password_in_it():
    with pytest.raises(NoModel) as raised:
        server_at(f"http://me:{SECRET}@127.0.0.1:9/v1?key={SECRET}")
    assert SECRET not in str(raised.value)
    assert "http://127.0.0.1:9/v1" in str(raised.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("opnai:gpt-5", "openai:gpt-5"),
        ("gemini-2.5-flsh", "google:gemini-2.5-flash"),
        ("sonnet", "anthropic:claude-sonnet"),
        ("", "provider:model"),
        ("nothing like it", "provider:model"),
    ],
)
def test_an_unknown_name_gets_the_nearest(name, near):
    with pytest.raises(NoModel) as raised:
        model_of(Choice(name, "you asked for it"), {"OPENAI_API_KEY": SECRET})
    assert near in raised.value.fix


@given(st.text(max_size=20), st.text(max_size=12))
def test_any_name_gives_a_model_or_an_error_of_ours(provider, model):
    try:
        model_of(Choice(f"{provider}:{model}", ""), {})
    except RefoldError as error:
        assert error.fix  # noqa: PT017 - most names raise, some do not


def test_models_of_providers_with_a_key_come_first():
    names = known_models({"XAI_API_KEY": SECRET, "DEEPSEEK_API_KEY": SECRET})
    assert names[0].startswith("deepseek:")
    assert [name.partition(":")[0] for name in names].index("xai") < names.index("openai:gpt-5")
    assert len(names) == len(set(names))


def test_choosing_needs_no_model_library():
    code = """
import sys
from refold.cli.chat.models.providers import chosen_model
from refold.settings import load_settings
chosen_model("openai:x", load_settings(), {})
assert not {"pydantic_ai", "openai", "prompt_toolkit"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
