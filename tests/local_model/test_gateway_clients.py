"""Official clients with a real model behind the gateway get what they get without it."""

import json
import os

import httpx2
import pytest
from local_model.official_clients import NpmClient, PythonClient, node_with_client
from local_model.server import require_local_model
from local_model.server import serving as serving_model
from serving import running, service_with

N_CTX = 512
CLIENTS = {
    "openai-chat": ("python", "chat"),
    "npm-openai": ("npm", "chat"),
    "openai-responses": ("python", "responses"),
    "anthropic": ("python", "messages"),
}
ONE = "openai-chat"
LIMIT = {"chat": "max_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}
REQUIRED = {"tool_choice": "required"}
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    with node_with_client(tmp_path_factory.mktemp("npm")) as node:
        yield node


@pytest.fixture(params=CLIENTS)
def client(request):
    language, api = CLIENTS[request.param]
    if language == "python":
        return PythonClient(api)
    return NpmClient(api, request.getfixturevalue("node"))


@pytest.fixture
def long(request):
    """What takes the model long is tried with one client, unless all are asked for."""
    if os.environ.get("REFOLD_CLIENTS") != "all" and request.node.callspec.params["client"] != ONE:
        pytest.skip("tried with one client; REFOLD_CLIENTS=all tries it with each")


@pytest.fixture(scope="module")
def direct():
    """The server of a model that can be made to call tools."""
    require_local_model()
    with serving_model(N_CTX, "calling_template.jinja") as url:
        yield url.removesuffix("/v1")


@pytest.fixture
async def gateway(direct):
    """The service as it is, before the real model."""
    upstream = {"name": "local", "base_url": f"{direct}/v1"}
    async with running(service_with(upstreams=[upstream])) as address:
        yield address


def body_of(api, messages, **more):
    said = {"input" if api == "responses" else "messages": messages}
    return {"model": "smollm2", LIMIT[api]: 6, "temperature": 0, **said, **more}


def user(text):
    return {"role": "user", "content": text}


def answered(api, told):
    """The messages by which a client goes on after an answer."""
    match api:
        case "chat":
            return [told.answer["choices"][0]["message"]]
        case "responses":
            return told.answer["output"]
        case _:
            return [{"role": "assistant", "content": told.answer["content"]}]


def tools_of(api):
    """A tool, and that it must be called."""
    match api:
        case "chat":
            function = {"name": "look", "parameters": SCHEMA}
            return {"tools": [{"type": "function", "function": function}], **REQUIRED}
        case "responses":
            tool = {"type": "function", "name": "look", "strict": False, "parameters": SCHEMA}
            return {"tools": [tool], **REQUIRED}
        case _:
            tools = [{"name": "look", "input_schema": SCHEMA}]
            return {"tools": tools, "tool_choice": {"type": "any"}}


def called(api, nth, at):
    """A call of the model's."""
    match api:
        case "chat":
            function = {"name": "look", "arguments": json.dumps({"at": at})}
            calls = [{"id": f"call_{nth}", "type": "function", "function": function}]
            return {"role": "assistant", "content": None, "tool_calls": calls}
        case "responses":
            call = {"type": "function_call", "call_id": f"call_{nth}", "name": "look"}
            return {**call, "arguments": json.dumps({"at": at})}
        case _:
            use = {"type": "tool_use", "id": f"call_{nth}", "name": "look", "input": {"at": at}}
            return {"role": "assistant", "content": [use]}


def result(api, call):
    """What came of a call."""
    match api:
        case "chat":
            of = {"tool_call_id": call["tool_calls"][0]["id"]}
            return {"role": "tool", **of, "content": "It is calm."}
        case "responses":
            of = {"call_id": call["call_id"]}
            return {"type": "function_call_output", **of, "output": "It is calm."}
        case _:
            of = {"tool_use_id": call["content"][-1]["id"]}
            return user([{"type": "tool_result", **of, "content": "It is calm."}])


def looks(api):
    """A conversation in which the model calls the tool each time."""
    said = []
    for nth, at in enumerate(("tree", "lake")):
        call = called(api, nth, at)
        said += [user(f"Look at the {at}."), call, result(api, call)]
    return [*said, user("Look at the sea.")]


def long_talk(api):
    """A conversation of more than the model takes, none of which the gateway has seen."""
    said = [user("We count ships.")]
    for nth in range(16):
        text = f"Ship {nth} came from the north with salt, rope and tar, and left with the tide."
        said += [model(api, text), user(f"What came after ship {nth}?")]
    return said


def model(api, text):
    if api != "responses":
        return {"role": "assistant", "content": text}
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "status": "completed", "content": [part]}


async def sent_in(gateway, told):
    """The messages that the model saw, as the API tells them by the answer's header."""
    session, _, seq = told.headers["refold-request"].partition(":")
    async with httpx2.AsyncClient(base_url=gateway) as client:
        found = await client.get(f"/api/v1/sessions/{session}/requests/{seq}")
        return found.raise_for_status().json()["messages"]


async def both(client, direct, gateway, body):
    """What comes directly and through the gateway, from a model with the same in its cache.

    What it computes in one go and what it has from its cache are not the same to the last bit.
    """
    await client.ask(direct, {**body, LIMIT[client.api]: 1, "stream": False})
    one, other = await client.ask(direct, body), await client.ask(gateway, body)
    assert other.headers["refold-managed"] == "yes"
    assert one.session is None
    return one, other


async def test_chat_is_as_without_the_gateway_and_its_session_goes_on(client, direct, gateway):
    body = body_of(client.api, [user("Say hello.")])
    one, other = await both(client, direct, gateway, body)
    assert other.status == 200
    assert other.same == one.same
    said = [user("Say hello."), *answered(client.api, other), user("And again.")]
    one, again = await both(client, direct, gateway, body_of(client.api, said))
    assert again.same == one.same
    assert again.session == other.session
    assert again.headers["refold-request"].startswith(f"{again.session}:")


async def test_a_stream_is_as_without_the_gateway(client, direct, gateway):
    more = {"stream_options": {"include_usage": True}} if client.api == "chat" else {}
    body = body_of(client.api, [user("Say hello.")], stream=True, **more)
    one, other = await both(client, direct, gateway, body)
    assert other.same == one.same
    assert len(other.answer) > 6


@pytest.mark.usefixtures("long")
async def test_a_call_is_as_without_the_gateway_and_its_result_goes_on(client, direct, gateway):
    said = looks(client.api)
    body = body_of(client.api, said, **tools_of(client.api)) | {LIMIT[client.api]: 40}
    one, other = await both(client, direct, gateway, body)
    assert other.same == one.same
    *_, call = answers = answered(client.api, other)
    went_on = [*said, *answers, result(client.api, call)]  # it needs the call's id: there is one
    more = tools_of(client.api) | {LIMIT[client.api]: 1}
    again = await client.ask(gateway, body_of(client.api, went_on, **more))
    assert again.session == other.session
    one, other = await both(client, direct, gateway, {**body, "stream": True})
    assert other.same == one.same
    assert "look" in json.dumps(other.answer)


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_talk_that_is_too_long_for_the_model_is_answered(client, direct, gateway, stream):
    said = long_talk(client.api)
    body = body_of(client.api, said, stream=stream)
    one, other = await client.ask(direct, body), await client.ask(gateway, body)
    assert (one.status, other.status) == (400, 200)
    assert one.answer["error"]["n_ctx"] == N_CTX
    sent = await sent_in(gateway, other)
    assert 1 < len(sent) < len(said)
    assert sent[-1] == said[-1]


@pytest.mark.usefixtures("long")
async def test_one_message_that_is_too_long_is_refused_as_without_it(client, direct, gateway):
    body = body_of(client.api, [user("word " * N_CTX)])
    one, other = await client.ask(direct, body), await client.ask(gateway, body)
    assert one.status == 400
    assert other.same == one.same
