"""One turn without a terminal: the answer on standard output, the rest on standard error."""

import json
import sys
from collections.abc import Callable
from typing import Any

from refold.cli.chat.conversation import Conversation, TurnEnd
from refold.cli.chat.heard import Called, Happened, Heard, Returned, Said
from refold.cli.chat.naming import name_for
from refold.cli.outcome import FAILED, INTERRUPTED
from refold.fold.events import CompactionComplete

_CODES = {"answered": 0, "interrupted": INTERRUPTED, "limit": FAILED, "failed": FAILED}


async def printed(conversation: Conversation, prompt: str, *, as_json: bool) -> int:
    """Say the prompt and print what comes of it; the exit code."""
    if not conversation.name:
        conversation.name = name_for(prompt)
    tools: list[dict[str, Any]] = []
    end = await conversation.turn(prompt, _hearing(tools, live=not as_json))
    if as_json:
        print(json.dumps(_as_json(conversation, end, tools), ensure_ascii=False))  # noqa: T201
    else:
        print()  # noqa: T201 - the answer is what is printed
        if end.how != "answered":
            _aside(f"error[{end.code or end.how}]: {end.text}\n{end.fix}")
    return _CODES[end.how]


def _hearing(tools: list[dict[str, Any]], *, live: bool) -> Callable[[Heard], None]:
    def hear(heard: Heard) -> None:
        match heard:
            case Said(text) if live:
                sys.stdout.write(text)
                sys.stdout.flush()
            case Called(_, tool, arguments):
                tools.append({"tool": tool, "arguments": arguments})
                if live:
                    _aside(f"calls {tool} {arguments}")
            case Returned(_, tool, _, seconds, failed):
                if live:
                    _aside(f"{tool} {'failed' if failed else 'answered'} in {seconds:.1f} s")
            case Happened(CompactionComplete(error=None) as event) if live:
                _aside(f"compacted {event.messages_removed} messages")
            case _:
                pass

    return hear


def _as_json(
    conversation: Conversation, end: TurnEnd, tools: list[dict[str, Any]]
) -> dict[str, Any]:
    status = conversation.status
    answered = end.how == "answered"
    return {
        "session": conversation.name,
        "model": status.model,
        "ended": end.how,
        "text": end.text if answered else "",
        "error": None if answered else {"code": end.code, "what": end.text, "fix": end.fix},
        "tools": tools,
        "context": {
            "tokens": status.filled.total if status.filled else None,
            "window": status.window,
        },
        "cost": status.cost,
        "saved": status.saved,
    }


def _aside(text: str) -> None:
    sys.stderr.write(f"{text}\n")
