"""Recall's tools over MCP: the official client, and whose conversation a call is about."""

import json
from contextlib import asynccontextmanager

import pytest
from mcp import Client

from refold.log import Author, Message, Opened
from refold.service.recall_mcp import Conversations, ToolCall, recall_server
from refold.stores import MemoryStore

AUTHOR = Author()
FORMS = ["openai-chat", "openai-responses", "anthropic-messages"]
NAME = "mcp__refold__recall_search"


def call_of(form, call, arguments, name=NAME):
    """An answer in which the model calls a tool."""
    text = json.dumps(arguments)
    match form:
        case "openai-chat":
            function = {"name": name, "arguments": text}
            made = {"id": call, "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [made]}
        case "openai-responses":
            return {"type": "function_call", "call_id": call, "name": name, "arguments": text}
        case _:
            block = {"type": "tool_use", "id": call, "name": name, "input": arguments}
            return {"role": "assistant", "content": [block]}


def result_of(form, call):
    match form:
        case "openai-chat":
            return {"role": "tool", "tool_call_id": call, "content": "found"}
        case "openai-responses":
            return {"type": "function_call_output", "call_id": call, "output": "found"}
        case _:
            block = {"type": "tool_result", "tool_use_id": call, "content": "found"}
            return {"role": "user", "content": [block]}


async def add(log, name, *messages, form="anthropic-messages"):
    values = [Message(json.dumps(message).encode()) for message in messages]
    if not any(info.session == name for info in (await log.sessions()).sessions):
        values.insert(0, Opened(form, "balanced", None))
    await log.append(name, [AUTHOR.draft(value) for value in values], expected=None)


def user(text):
    return {"role": "user", "content": text}


@pytest.fixture
async def log():
    async with MemoryStore() as store:
        yield store.log()


def found_by(log, *sessions):
    async def recent():
        return sessions

    return Conversations(log, recent).calling


def asking(query, *ids):
    return ToolCall("recall_search", {"query": query}, frozenset(ids))


class TestWhoseConversation:
    @pytest.mark.parametrize("form", FORMS)
    async def test_the_one_whose_model_made_the_call_by_its_id(self, log, form):
        for name in ("older", "newer"):
            call = call_of(form, f"call of {name}", {"query": "parcel"})
            await add(log, name, user("hi"), call, form=form)
        find = found_by(log, "newer", "older")
        assert await find(asking("parcel", "7", "call of older")) == "older"
        assert await find(asking("parcel", "call of newer")) == "newer"

    @pytest.mark.parametrize("form", FORMS)
    async def test_the_one_whose_model_made_the_call_by_its_arguments(self, log, form):
        await add(log, "older", user("hi"), call_of(form, "a", {"query": "parcel"}), form=form)
        await add(log, "newer", user("hi"), call_of(form, "b", {"query": "depot"}), form=form)
        find = found_by(log, "newer", "older")
        assert await find(asking("parcel")) == "older"
        assert await find(asking("depot")) == "newer"

    @pytest.mark.parametrize("form", FORMS)
    async def test_a_call_that_has_its_result_is_another_one(self, log, form):
        call = call_of(form, "a", {"query": "parcel"})
        await add(log, "older", user("hi"), call, form=form)
        await add(log, "newer", user("hi"), call, result_of(form, "a"), form=form)
        assert await found_by(log, "newer", "older")(asking("parcel")) == "older"

    async def test_a_call_that_is_logged_a_moment_later(self, log):
        await add(log, "newer", user("hi"))
        await add(log, "older", user("hi"))
        looks = 0

        async def recent():
            nonlocal looks
            looks += 1
            if looks == 3:
                call = call_of("anthropic-messages", "a", {"query": "parcel"})
                await add(log, "older", call)
            return ["newer", "older"]

        assert await Conversations(log, recent).calling(asking("parcel", "a")) == "older"

    async def test_a_call_that_no_log_has_is_of_the_one_used_last(self, log):
        await add(log, "older", user("hi"))
        await add(log, "newer", user("hi"))
        assert await found_by(log, "newer", "older")(asking("parcel", "a")) == "newer"

    async def test_other_tools_and_forgotten_sessions_are_passed_over(self, log):
        call = call_of("anthropic-messages", "a", {"query": "parcel"}, "grep")
        await add(log, "newest", user("hi"), call)
        await add(log, "gone", user("hi"))
        await log.forget("gone")
        same = call_of("anthropic-messages", "b", {"query": "parcel"})
        await add(log, "older", user("hi"), same)
        find = found_by(log, "newest", "gone", "never there", "older")
        assert await find(asking("parcel", "a")) == "older"

    async def test_nothing_is_kept_yet(self, log):
        assert await found_by(log)(asking("parcel")) is None


class TestTools:
    @asynccontextmanager
    async def client(self, log):
        await add(log, "s", user("The parcel is at depot 7."), user("Thanks."))
        self.calls = []

        async def session_of(call):
            self.calls.append(call)
            return None if "nowhere" in str(call.arguments) else "s"

        async with Client(recall_server(log, session_of)) as client:
            yield client

    async def test_they_are_three_and_read_only(self, log):
        async with self.client(log) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == [
                "recall_search",
                "recall_read",
                "recall_history",
            ]
            assert all(tool.annotations.read_only_hint for tool in tools)
            # Each request carries them: about 420 tokens.
            text = "".join(tool.model_dump_json(exclude_none=True) for tool in tools)
            assert len(text) < 2_600

    async def test_search_then_read(self, log):
        async with self.client(log) as client:
            found = await client.call_tool("recall_search", {"query": "parcel depot"})
            assert "[2] user: The parcel is at depot 7." in found.content[0].text
            assert not found.is_error
            read = await client.call_tool("recall_read", {"at": "2"})
            assert "> The parcel is at depot 7." in read.content[0].text
            history = await client.call_tool("recall_history", {})
            assert "[2] in view: The parcel is at depot 7." in history.content[0].text

    async def test_the_call_comes_with_what_the_agent_says_of_it(self, log):
        async with self.client(log) as client:
            meta = {"claudecode/toolUseId": "toolu_1", "turn": {"session": "abc"}, "progress": 3}
            await client.call_tool("recall_search", {"query": "parcel"}, meta=meta)
            [call] = self.calls
            assert (call.name, call.arguments) == ("recall_search", {"query": "parcel"})
            assert {"toolu_1", "abc"} <= call.ids

    async def test_wrong_arguments_are_answered_in_words(self, log):
        async with self.client(log) as client:
            answer = await client.call_tool("recall_read", {"at": "everything"})
            assert "That is not an entry number." in answer.content[0].text
            answer = await client.call_tool("recall_search", {"question": "?"})
            assert "Call it again with other arguments" in answer.content[0].text
            answer = await client.call_tool("delete_everything", {})
            assert answer.is_error

    async def test_before_anything_is_kept(self, log):
        async with self.client(log) as client:
            answer = await client.call_tool("recall_search", {"query": "nowhere"})
            assert answer.content[0].text == "Nothing of this conversation is kept yet."
