"""What our modules named `…_compat` use of dependencies is there, in the versions we allow.

Everything here fails when a new version takes such a name away. Then the module is adapted, or the
version is excluded in `pyproject.toml`.
"""

import asyncio
import logging
import re
import tomllib
from pathlib import Path

import pytest
from talks import until
from tree_copies import ROOT

pytest.importorskip("prompt_toolkit")
pytest.importorskip("pydantic_ai")
pytest.importorskip("uvicorn")

import prompt_toolkit.application
import uvicorn
from prompt_toolkit.application import Application
from pydantic_ai import Agent, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from refold.cli.chat.terminal.prompt_toolkit_compat import ResizableApplication
from refold.errors import InvalidInput
from refold.integrations.pydantic_ai.pydantic_ai_compat import (
    PartStream,
    enter_history,
    is_generated_id,
)
from refold.service import uvicorn_compat
from refold.service.middleware import slow_client_protocol
from refold.settings.serve import Serve

CAPPED = {
    "dbos",
    "httpcore2",
    "httpx2",
    "prompt-toolkit",
    "psycopg",
    "pydantic-ai-slim",
    "uvicorn",
}
"""Packages of which more is used than what they promise to keep."""


def test_packages_with_a_module_of_their_own_are_capped():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [one for extra in project["optional-dependencies"].values() for one in extra]
    of_capped = [one for one in asked if re.match(r"[\w-]+", one)[0] in CAPPED]
    assert {re.match(r"[\w-]+", one)[0] for one in of_capped} == CAPPED
    assert [one for one in of_capped if "<" not in one] == []


# prompt_toolkit


def test_prompt_toolkit_calls_what_we_replace_when_the_size_changes():
    source = Path(prompt_toolkit.application.application.__file__).read_text(encoding="utf-8")
    assert "attach_winch_signal_handler(self._on_resize)" in source
    assert callable(Application._on_resize)
    assert callable(Application._redraw)
    assert ResizableApplication._on_resize is not Application._on_resize


# uvicorn


async def app(scope, receive, send):  # noqa: ARG001 - as ASGI has it
    while (await receive())["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


def config():
    return uvicorn.Config(
        app, http=slow_client_protocol(Serve()), ws="none", lifespan="off", log_config=None
    )


async def test_uvicorn_says_whether_a_request_is_under_way():
    made = config()
    uvicorn_compat.check(made)
    state = uvicorn.server.ServerState()
    protocol = made.http_protocol_class(config=made, server_state=state, app_state={})
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: protocol, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n")
        await until(lambda: getattr(protocol, "_header_bytes", 0))
        assert not uvicorn_compat.request_is_under_way(protocol)
        writer.write(b"\r\n")
        await until(lambda: uvicorn_compat.request_is_under_way(protocol))
        writer.write(b"abc")
        assert (await reader.readline()).startswith(b"HTTP/1.1 204")
        await until(lambda: not uvicorn_compat.request_is_under_way(protocol))
        writer.close()


async def test_a_uvicorn_that_does_not_is_refused_at_the_start(monkeypatch):
    began = AutoHTTPProtocol.__init__

    def without(self, *args, **how):
        began(self, *args, **how)
        del self.cycle

    monkeypatch.setattr(AutoHTTPProtocol, "__init__", without)
    with pytest.raises(InvalidInput, match="does not work with uvicorn"):
        uvicorn_compat.check(config())


def test_uvicorn_still_says_what_is_left_out_of_the_log():
    folder = Path(uvicorn.__file__).parent
    source = "".join(one.read_text(encoding="utf-8") for one in folder.rglob("*.py"))
    for message in uvicorn_compat.EXPECTED_MESSAGES:
        assert message in source
    record = logging.LogRecord("uvicorn.error", 30, "", 1, "Something else.", (), None)
    assert uvicorn_compat.is_news(record)
    assert callable(uvicorn.Server.capture_signals)


# Pydantic AI


async def test_a_run_continues_from_what_a_hook_adds_to_its_history():
    past = [ModelRequest.user_text_prompt("before"), ModelResponse([TextPart("so")])]
    sent = []

    class Entering(AbstractCapability[None]):
        async def before_run(self, ctx):
            enter_history(ctx, past)

    def answer(messages, info):  # noqa: ARG001 - as the framework calls it
        sent.extend(messages)
        return ModelResponse([TextPart("done")])

    result = await Agent(FunctionModel(answer), capabilities=[Entering()]).run("now")
    assert [one.parts[-1].content for one in sent] == ["before", "so", "now"]
    assert len(result.all_messages()) == 4
    assert len(result.new_messages()) == 2


async def test_an_id_that_the_framework_makes_is_known_as_such():
    seen = []

    class Looking(AbstractCapability[None]):
        async def before_run(self, ctx):
            seen.append(ctx.conversation_id)

    model = FunctionModel(lambda _, __: ModelResponse([TextPart("x")]))
    agent = Agent(model, capabilities=[Looking()])
    await agent.run("one")
    await agent.run("two", conversation_id="mine")
    assert [is_generated_id(one) for one in seen] == [True, False]


async def test_parts_are_streamed_with_what_they_used():
    async def parts():
        yield "Two "
        yield "words"
        yield ToolCallPart("look", "{}", "call-1")

    used = RequestUsage(input_tokens=7, output_tokens=3)
    stream = PartStream(ModelRequestParameters(), parts(), used, "scripted")
    events = [event async for event in stream]
    response = stream.get()
    assert len(events) >= 3
    assert response.parts == [TextPart("Two words"), ToolCallPart("look", "{}", "call-1")]
    assert (response.usage, response.model_name) == (used, "scripted")
