"""Scripted coding agents before a running gateway, and a provider that checks every request.

An agent here keeps its history as real ones do: it sends all of it with each request, in the form
that its habits give it, runs the calls, and goes on.
"""

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import httpx2
from gateway_world import CHAT, MESSAGES, RESPONSES, served
from serving import running

from refold.models.catalog import ModelSettings
from refold.service.service import Service
from refold.settings import Serve, load_settings
from refold.stores import MemoryStore
from refold.testing.upstream import Reply, RequestChecker, ScriptedUpstream

KEYS = {CHAT: "messages", RESPONSES: "input", MESSAGES: "messages"}
MODEL = "agent-model"


@dataclass
class Bench:
    """A running gateway before a strict provider."""

    address: str
    upstream: ScriptedUpstream
    store: MemoryStore
    service: Service
    client: httpx2.AsyncClient

    async def sessions(self):
        return sorted(one.session for one in (await self.store.log().sessions()).sessions)

    @property
    def faults(self):
        return [why for _, why in self.upstream.checker.faults]


@asynccontextmanager
async def bench(reply, *, window=200_000, store=None, models=(MODEL,)):
    """A gateway as `refold serve` runs it, before a provider that refuses what the API would."""
    upstream = ScriptedUpstream(reply, checker=RequestChecker())
    async with served(upstream) as address:
        serve = {"upstreams": [{"name": "up", "base_url": f"{address}/v1"}]}
        known = {name: ModelSettings(window=window) for name in models}
        settings = replace(load_settings(), serve=Serve.model_validate(serve), models=known)
        store = store or MemoryStore()
        service = Service(settings, store, "memory:", local=True)
        async with (
            running(service) as gateway,
            httpx2.AsyncClient(base_url=gateway, timeout=60) as client,
        ):
            yield Bench(gateway, upstream, store, service, client)


@dataclass
class Agent:
    """A client that sends its whole history each time."""

    bench: Bench
    path: str = MESSAGES
    rewrite: object = None
    """Takes the messages of an answer, and gives what the agent sends back of them."""
    instructions: str = "You are a coding agent. Use the tools."
    result: object = lambda call: f"result of {call}"
    history: list = field(default_factory=list)
    served_by: list = field(default_factory=list)
    """The session of each answer, as the gateway names it."""
    headers: dict = field(default_factory=dict)
    extra: dict = field(default_factory=dict)

    def body(self):
        given = {"model": MODEL, KEYS[self.path]: self.history, **self.extra}
        if self.path == MESSAGES:
            return {**given, "max_tokens": 1_000, "system": self.instructions}
        if self.path == RESPONSES:
            include = ["reasoning.encrypted_content"]
            return {**given, "instructions": self.instructions, "include": include, "store": False}
        lead = {"role": "system", "content": self.instructions}
        return {**given, "messages": [lead, *self.history]}

    async def send(self):
        """One request; the messages of its answer as the agent keeps them."""
        answer = await self.bench.client.post(self.path, json=self.body(), headers=self.headers)
        assert answer.status_code == 200, answer.text
        self.served_by.append(answer.headers["refold-session"])
        return self.kept(answer.json())

    def kept(self, answer):
        match self.path:
            case "/v1/messages":
                messages = [{"role": "assistant", "content": answer["content"]}]
            case "/v1/responses":
                messages = answer["output"]
            case _:
                message = answer["choices"][0]["message"]
                messages = [{key: one for key, one in message.items() if one is not None}]
        return self.rewrite(messages) if self.rewrite else messages

    async def say(self, text, most=200):
        """A turn: requests until an answer has no calls."""
        self.history.append({"role": "user", "content": text})
        for _ in range(most):
            answer = await self.send()
            self.history += answer
            if not (results := self.results(answer)):
                return
            self.history += results

    def results(self, answer):
        if self.path == MESSAGES:
            names = [one["id"] for one in answer[0]["content"] if one["type"] == "tool_use"]
            blocks = [
                {"type": "tool_result", "tool_use_id": name, "content": self.result(name)}
                for name in names
            ]
            return [{"role": "user", "content": blocks}] if blocks else []
        if self.path == RESPONSES:
            return [
                {
                    "type": "function_call_output",
                    "call_id": one["call_id"],
                    "output": self.result(one["call_id"]),
                }
                for one in answer
                if one["type"] == "function_call"
            ]
        return [
            {"role": "tool", "tool_call_id": one["id"], "content": self.result(one["id"])}
            for one in answer[0].get("tool_calls", ())
        ]


def calls_of(path, messages):
    """The calls in an answer, as (holder, key of the arguments, read, written)."""
    for message in messages:
        if path == MESSAGES:
            for one in message["content"]:
                if one["type"] == "tool_use":
                    yield one, "input", lambda given: given, lambda given: given
        elif path == RESPONSES:
            if message["type"] == "function_call":
                yield message, "arguments", json.loads, json.dumps
        else:
            for one in message.get("tool_calls", ()):
                yield one["function"], "arguments", json.loads, json.dumps


def with_arguments(path, change):
    """A habit: each call's arguments are changed before they are sent back."""

    def rewrite(messages):
        messages = json.loads(json.dumps(messages))
        for holder, key, read, write in calls_of(path, messages):
            holder[key] = write(change(read(holder[key])))
        return messages

    return rewrite


def without_blank_text(path):
    """A habit: text that says nothing is dropped."""

    def rewrite(messages):
        kept = []
        for message in messages:
            content = message.get("content")
            if isinstance(content, list):
                content = [one for one in content if one.get("text") is None or one["text"].strip()]
            elif isinstance(content, str) and not content.strip():
                content = None
            if path != RESPONSES or message["type"] != "message":
                kept.append({**message, "content": content} if "content" in message else message)
            elif content:
                kept.append({**message, "content": content})
        return kept

    return rewrite


def scripted(answers, *, key=None):
    """A provider that gives these answers one after another, and then says that it is done."""
    left = {}

    def reply(got):
        which = key(got) if key else ""
        script = left.setdefault(which, list(answers))
        return script.pop(0) if script else Reply("All is done now.")

    return reply
