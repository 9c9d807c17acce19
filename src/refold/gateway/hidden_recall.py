"""Recall's tools for clients that have none: the gateway adds them, and answers their calls.

With `serve.recall_tools`, a request that defines no tools of recall's gets them. If the model calls
one, the gateway runs it on the session's log and asks again, within the same HTTP exchange. An
answer that also calls the client's own tools is shown to the client without the hidden calls; these
are run when the client sends its results, and come before those.

The log holds the whole exchange. Before a request is planned, what the client saw of an answer is
replaced by what the model answered: its bytes are the log's, so they are the same in every request,
and signed thinking stays with its calls.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from refold.gateway.dialects.cache_marks import marks_of, move_mark_to_end, restore_marks
from refold.gateway.dialects.dialect import Answer, Dialect, ParsedRequest
from refold.gateway.dialects.hidden_calls import (
    HIDDEN_FORMS,
    HiddenCall,
    HiddenForm,
    ShownMessage,
    ToolText,
)
from refold.gateway.dialects.hidden_streams import NAMES
from refold.gateway.history import match_payloads
from refold.log import Log
from refold.models.experience import recall_names
from refold.recall import Tool, recall_tools
from refold.session import Session
from refold.wire.splice import Object, compact_json

MAX_ROUNDS: Final = 5
"""How often one answer may read back; then the model is asked once more, and may call no tool."""
HINT: Final = b"recall_"
"""What a message with a hidden call has in it."""


class HiddenRecall:
    """Recall's tools in the requests of one dialect, on a tenant's log."""

    def __init__(self, dialect: Dialect, log: Log) -> None:
        self.form: HiddenForm = HIDDEN_FORMS[dialect.name]
        self._dialect = dialect
        self._log = log

    def offer(self, parsed_request: ParsedRequest) -> ParsedRequest | None:
        """The request with the tools; None if it has such tools already, or takes none."""
        body = parsed_request.body
        field = self._dialect.tools[0]
        defined = body.get(field)
        tools: list[JsonValue] = defined if isinstance(defined, list) else []
        if any(body.get(name) for name in self._dialect.tools[1:]) or (defined and not tools):
            return None
        if self._dialect.state.keeps(dict(body)):
            return None  # the provider keeps each round by itself, and clients may refer to it
        if any(map(recall_names, parsed_request.tools)):
            return None
        own: list[JsonValue] = [self.form.definition(_text_of(tool)) for tool in self._tools("any")]
        tools = [*tools, *own]
        return self._changed(
            replace(
                parsed_request,
                tools=(*parsed_request.tools, *(compact_json(tool).decode() for tool in own)),
                extras={**parsed_request.extras, "tools": compact_json(tools)},
            ),
            {field: tools},
        )

    def without_choice(self, parsed_request: ParsedRequest) -> ParsedRequest:
        """The request, so that the model calls no tool."""
        changed = self._changed(parsed_request, {"tool_choice": self.form.no_tools})
        named = {self._dialect.conversation, self._dialect.instructions, self._dialect.tools[0]}
        settings = {key: value for key, value in changed.body.items() if key not in named}
        return replace(changed, extras={**changed.extras, "settings": compact_json(settings)})

    def full(self, parsed_request: ParsedRequest, rows: Sequence[bytes]) -> ParsedRequest:
        """The request with what is hidden put back, from a session's messages."""
        messages = self.put_back(parsed_request.messages, rows)
        if messages is parsed_request.messages:
            return parsed_request
        raw = self._dialect.body(parsed_request, messages)
        return replace(parsed_request, messages=messages, raw=raw)

    def only_hidden(self, payloads: Sequence[bytes]) -> list[HiddenCall]:
        """The calls of an answer that the gateway alone has to answer; none if others must."""
        calls, others = self.form.calls(payloads)
        return [] if others else calls

    def shown(self, answers: Sequence[Answer]) -> tuple[bytes, ...]:
        """What the client has of an answer in several rounds."""
        if self.form.merges:
            texts = [self.form.shown(answer.payloads)[0].payload for answer in answers]
            found = [text for text in texts if text is not None]
            return (self.form.merged(found),) if len(found) > 1 else tuple(found)
        payloads = [payload for answer in answers for payload in answer.payloads]
        shown = self.form.shown(payloads)
        return tuple(each.payload for each in shown if each.payload is not None)

    async def run(self, session: str, calls: Sequence[HiddenCall]) -> list[bytes]:
        """The messages with the results of calls."""
        tools = {tool.name: tool for tool in self._tools(session)}
        return self.form.results(
            [(call.id, await tools[call.tool].run(call.arguments or "{}")) for call in calls]
        )

    async def answer_open_calls(self, session: Session, messages: list[bytes]) -> list[bytes]:
        """The client's new messages, after the results of hidden calls that still need some."""
        await session.catch_up()
        rows = [row.payload for row in session.inputs.rows]
        newest = self.form.newest_answer(rows)
        calls, _ = self.form.calls(newest)
        if not calls:
            return messages
        results = await self.run(session.name, calls)
        joined = self.form.with_results(messages[0], results)
        if joined is not None:
            return [joined, *messages[1:]]
        await session.say(*results)
        return messages

    def _tools(self, session: str) -> tuple[Tool, ...]:
        tools = recall_tools(self._log, session, outside=True)
        return tuple(tool for tool in tools if tool.name in NAMES)

    def _changed(self, parsed_request: ParsedRequest, fields: Object) -> ParsedRequest:
        body = {**parsed_request.body, **fields}
        pairs = (compact_json(key) + b":" + compact_json(value) for key, value in body.items())
        return replace(parsed_request, body=body, raw=b"{" + b",".join(pairs) + b"}")

    def put_back(self, messages: tuple[bytes, ...], rows: Sequence[bytes]) -> tuple[bytes, ...]:
        """The client's messages with what is hidden among them, from a session's messages."""
        if not any(HINT in row for row in rows):
            return messages
        shown = self.form.shown(rows)
        if all(each.plain for each in shown):
            return messages
        known = [each for each in shown if each.payload is not None]
        payloads = [each.payload for each in known if each.payload is not None]
        pairs = match_payloads(self._dialect, messages, payloads)
        places = {id(each): pairs[nth] for nth, each in enumerate(known) if nth in pairs}
        place = min(pairs.values(), default=0) - 1
        instead: dict[int, list[bytes]] = {}
        after: dict[int, list[bytes]] = {}
        for each in shown:
            own = places.get(id(each))
            if own is not None:
                place = own
                if not each.plain:
                    instead[own] = self._instead(messages[own], each, rows)
            elif not each.plain:
                after.setdefault(place, []).extend(rows[index] for index in each.rows)
        full = [*after.get(-1, [])]
        for index, message in enumerate(messages):
            full += [*instead.get(index, [message]), *after.get(index, [])]
        later = len(after.get(len(messages) - 1, ()))
        if later:
            # Another round of the same exchange. Anthropic finds a cached beginning up to 20 blocks
            # before a mark, and rounds may have more than that.
            full = move_mark_to_end(full, len(full) - 1 - later)
        return tuple(full)

    def _instead(self, message: bytes, shown: ShownMessage, rows: Sequence[bytes]) -> list[bytes]:
        """What is sent in the place of a client's message, with the client's cache marks."""
        logged = [rows[index] for index in shown.rows]
        if shown.results:
            texts = self.form.results_in(logged[0], shown.results)
            joined = self.form.with_results(message, self.form.results(texts))
            return [message if joined is None else joined]
        if marks_of(message):
            logged[-1] = restore_marks([message], [(0, logged[-1])])[0]
        return logged


def _text_of(tool: Tool) -> ToolText:
    return ToolText(tool.name, tool.description, tool.schema)
