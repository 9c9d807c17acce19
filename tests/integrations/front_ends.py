"""Web front ends for tests: each keeps its own list of messages, as the real SDKs do.

What they know of an answer is what the event stream said of it: ids, texts, calls, results. They
keep no timestamps, no usage, no thinking. Everything goes through JSON, as over HTTP.
"""

# pyright: reportArgumentType=false, reportIndexIssue=false

import json
from itertools import count
from typing import Any
from uuid import uuid4

from ag_ui.core import RunAgentInput
from pydantic_ai import Agent
from pydantic_ai.ui.ag_ui import AGUIAdapter
from pydantic_ai.ui.vercel_ai import VercelAIAdapter


class FrontEnd:
    """A browser: what it shows, and what it sends."""

    def __init__(self, agent: Agent[Any, Any], thread: str = "thread-1"):
        self.agent = agent
        self.thread = thread
        self.messages: list[dict[str, Any]] = []
        self.errors: list[str] = []
        self.tools: list[dict[str, Any]] = []
        self.pending: list[str] = []
        """Calls of front-end tools that wait for their results."""
        self._ids = (uuid4().hex for _ in count())

    async def say(self, text: str) -> str:
        """Send a prompt; what was answered."""
        self.messages.append(self.prompt(text))
        return await self.submit()

    async def edit(self, nth: int, text: str) -> str:
        """Write the nth prompt again: what followed it is no longer shown."""
        at = self._prompts()[nth]
        before = self.messages[at]["id"]
        del self.messages[at:]
        self.messages.append({**self.prompt(text), "id": before})
        return await self.submit()

    async def regenerate(self) -> str:
        """Ask for another answer to the newest prompt."""
        del self.messages[self._prompts()[-1] + 1 :]
        return await self.submit()

    def reload(self) -> None:
        """The page was loaded again: nothing is shown, and the thread is the same."""
        self.messages = []

    def count_ids(self) -> None:
        """Give messages ids that count from 0, as some pages do."""
        self._ids = (f"m{nth}" for nth in count())

    def truncate(self, turns: int) -> None:
        """Keep the newest turns only."""
        del self.messages[: self._prompts()[-turns]]

    def shown(self) -> list[str]:
        """The texts on the screen."""
        raise NotImplementedError

    def prompt(self, text: str) -> dict[str, Any]:
        raise NotImplementedError

    async def submit(self) -> str:
        raise NotImplementedError

    def _prompts(self) -> list[int]:
        return [at for at, one in enumerate(self.messages) if one["role"] == "user"]


class AGUI(FrontEnd):
    """As `@ag-ui/client` does it."""

    def prompt(self, text):
        return {"id": next(self._ids), "role": "user", "content": text}

    async def submit(self):
        sent = {
            "threadId": self.thread,
            "runId": next(self._ids),
            "messages": self.messages,
            "tools": self.tools,
            "state": {},
            "context": [],
            "forwardedProps": {},
        }
        run_input = AGUIAdapter.build_run_input(json.dumps(sent).encode())
        assert isinstance(run_input, RunAgentInput)
        adapter = AGUIAdapter(agent=self.agent, run_input=run_input, accept=None)
        self.messages = json.loads(json.dumps(self.messages))
        self.pending = []
        async for line in adapter.encode_stream(adapter.run_stream()):
            self._apply(json.loads(line.removeprefix("data: ")))
        if self.errors:
            raise AssertionError(self.errors)
        last = self.messages[-1]
        return last.get("content") or ""

    def result(self, call: str, content: str):
        """A front-end tool has run."""
        self.pending.remove(call)
        made = {"id": next(self._ids), "role": "tool", "toolCallId": call, "content": content}
        self.messages.append(made)

    def shown(self):
        return [one["content"] for one in self.messages if one.get("content")]

    def _apply(self, event):
        match event["type"]:
            case "RUN_ERROR":
                self.errors.append(event["message"])
            case "TEXT_MESSAGE_START":
                self.messages.append({"id": event["messageId"], "role": "assistant", "content": ""})
            case "TEXT_MESSAGE_CONTENT":
                self._by_id(event["messageId"])["content"] += event["delta"]
            case "TOOL_CALL_START":
                self.pending.append(event["toolCallId"])
                parent = self._by_id(event["parentMessageId"])
                function = {"name": event["toolCallName"], "arguments": ""}
                made = {"id": event["toolCallId"], "type": "function", "function": function}
                parent.setdefault("toolCalls", []).append(made)
            case "TOOL_CALL_ARGS":
                self._call(event["toolCallId"])["function"]["arguments"] += event["delta"]
            case "TOOL_CALL_RESULT":
                self.pending.remove(event["toolCallId"])
                kept = {key: event[key] for key in ("toolCallId", "role", "content")}
                self.messages.append({"id": event["messageId"], **kept})
            case _:
                pass

    def _by_id(self, wanted):
        return next(one for one in self.messages if one["id"] == wanted)

    def _call(self, wanted):
        calls = (call for one in self.messages for call in one.get("toolCalls", ()))
        return next(call for call in calls if call["id"] == wanted)


class Vercel(FrontEnd):
    """As `useChat` of the AI SDK does it: an answer with all of its steps is one message."""

    def __init__(self, agent, thread="thread-1", *, echo_times=False):
        super().__init__(agent, thread)
        self.echo_times = echo_times
        self._trigger: dict[str, Any] = {"trigger": "submit-message"}

    def prompt(self, text):
        return {"id": next(self._ids), "role": "user", "parts": [{"type": "text", "text": text}]}

    async def regenerate(self):
        self._trigger = {"trigger": "regenerate-message", "messageId": self.messages[-1]["id"]}
        return await super().regenerate()

    async def submit(self):
        sent = {**self._trigger, "id": self.thread, "messages": self.messages}
        self._trigger = {"trigger": "submit-message"}
        run_input = VercelAIAdapter.build_run_input(json.dumps(sent).encode())
        adapter = VercelAIAdapter(agent=self.agent, run_input=run_input, accept=None)
        self.messages = json.loads(json.dumps(self.messages))
        self.pending = []
        if self.messages[-1]["role"] != "assistant":  # else the answer goes on
            made = {"id": next(self._ids), "role": "assistant", "parts": []}
            self.messages.append(made)
        async for line in adapter.encode_stream(adapter.run_stream()):
            data = line.removeprefix("data: ").strip()
            if data != "[DONE]":
                self._apply(json.loads(data), self.messages[-1])
        if self.errors:
            raise AssertionError(self.errors)
        texts = [one["text"] for one in self.messages[-1]["parts"] if one["type"] == "text"]
        return texts[-1] if texts else ""

    def result(self, call: str, content: str):
        """A front-end tool has run."""
        self.pending.remove(call)
        self._call(self.messages[-1], call).update(state="output-available", output=content)

    def shown(self):
        parts = (part for one in self.messages for part in one["parts"])
        return [one["text"] for one in parts if one["type"] == "text"]

    def _apply(self, chunk, answer):  # noqa: C901 - one case for each kind of chunk
        parts = answer["parts"]
        match chunk["type"]:
            case "error":
                self.errors.append(chunk["errorText"])
            case "start" if chunk.get("messageId"):
                answer["id"] = chunk["messageId"]
            case "start-step":
                parts.append({"type": "step-start"})
            case "text-start":
                parts.append({"type": "text", "text": "", "state": "streaming"})
            case "text-delta":
                parts[-1]["text"] += chunk["delta"]
            case "text-end":
                parts[-1]["state"] = "done"
            case "tool-input-start":
                parts.append(
                    {
                        "type": f"tool-{chunk['toolName']}",
                        "toolCallId": chunk["toolCallId"],
                        "state": "input-streaming",
                        "input": None,
                    }
                )
            case "tool-input-available":
                self.pending.append(chunk["toolCallId"])
                call = self._call(answer, chunk["toolCallId"])
                call.update(state="input-available", input=chunk["input"])
            case "tool-output-available":
                self.pending.remove(chunk["toolCallId"])
                call = self._call(answer, chunk["toolCallId"])
                call.update(state="output-available", output=chunk["output"])
            case "message-metadata" if self.echo_times:
                answer["metadata"] = chunk["messageMetadata"]
            case _:
                pass

    @staticmethod
    def _call(answer, wanted):
        return next(one for one in answer["parts"] if one.get("toolCallId") == wanted)
