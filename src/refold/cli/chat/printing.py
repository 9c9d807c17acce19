"""One turn without a terminal (`refold chat -p`), and how an interactive chat begins and ends."""

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, cast

from rich.console import Group, RenderableType
from rich.text import Text

from refold import __version__
from refold.cli.chat.clean import Cleaner, cleaned
from refold.cli.chat.conversation import Conversation, TurnEnd, new_name
from refold.cli.chat.endpoint import EndpointNotes, endpoint_of
from refold.cli.chat.models.providers import ASKED, Choice
from refold.cli.chat.status import COMPACTING
from refold.cli.chat.surface import ContextEvent, TextDelta, ToolCall, ToolResult, TurnEvent
from refold.cli.outcome import FAILED, INTERRUPTED, unwritten
from refold.exports.moments import counted
from refold.fold.events import CompactionComplete, CompactionWait

_CODES = {"answered": 0, "interrupted": INTERRUPTED, "limit": FAILED, "failed": FAILED}


class PrintedTurn:
    """One turn: the answer goes to standard output, the rest to standard error.

    With `as_json`, standard output has a line for each event of the session, and the last line is
    the answer.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._output = _Output()
        self._tools: list[dict[str, Any]] = []

    def on_event(self, event: TurnEvent) -> None:
        match event:
            case ToolCall():
                self._tools.append({"tool": event.tool, "arguments": event.arguments})
            case ContextEvent(happening) if self._as_json:
                self._output.write_json(happening.as_json())
            case _:
                pass
        if not self._as_json:
            _print(event, self._output)

    async def run(self, conversation: Conversation, prompt: str) -> int:
        """Run the turn, close the conversation, and return the exit code."""
        if not conversation.name:
            conversation.name = new_name()
        output = self._output
        endpoint = endpoint_of(conversation.model)
        # The same words again are a retry: the log has them already.
        said = None if prompt == await conversation.unanswered() else prompt
        async with EndpointNotes().during_turn(conversation.log, conversation.name, endpoint):
            end = await conversation.turn(said, self.on_event)
        if not self._as_json:
            output.write("\n")
            if end.how != "answered":
                print_to_stderr(f"error[{end.code}]: {end.text}\n{end.fix}")
            elif end.at_limit:
                print_to_stderr(end.fix)
        await conversation.close(finish=True)  # a fold that ends now is an event before the answer
        if self._as_json:
            output.write_json(_as_json(conversation, end, self._tools))
        return _CODES[end.how] if output.error is None else unwritten(output.error)


def print_to_stderr(text: str) -> None:
    with suppress(OSError, AttributeError):  # its reader may be gone, or there is no such output
        sys.stderr.write(f"{cleaned(text)}\n")


class _Output:
    """Standard output. Once it takes no more, the turn goes on without it."""

    def __init__(self) -> None:
        self._file = cast("TextIO | None", sys.stdout)
        self._cleaner = Cleaner() if self._file is not None and self._file.isatty() else None
        self.error: OSError | None = None if self._file is not None else BrokenPipeError()

    def write(self, text: str) -> None:
        """Write it now; to a terminal, without control sequences."""
        if self._file is None or self.error is not None:
            return
        try:
            self._file.write(text if self._cleaner is None else self._cleaner.feed(text))
            self._file.flush()
        except OSError as error:
            self.error = OSError(error.errno, error.strerror, "standard output")

    def write_json(self, value: Mapping[str, Any]) -> None:
        """Write it on one line; on a terminal, control characters are escaped."""
        text = json.dumps(value, ensure_ascii=False)
        unsafe = self._cleaner is not None and cleaned(text) != text
        self.write(f"{json.dumps(value) if unsafe else text}\n")


def _print(event: TurnEvent, output: _Output) -> None:
    match event:
        case TextDelta(text):
            output.write(text)
        case ToolCall(_, tool, arguments):
            print_to_stderr(f"calls {tool} {arguments}")
        case ToolResult(_, tool, _, seconds, failed):
            time = f" in {seconds:.1f} s" if seconds is not None else ""
            print_to_stderr(f"{tool} {'failed' if failed else 'answered'}{time}")
        case ContextEvent(CompactionWait()):
            print_to_stderr(f"{COMPACTING}.")
        case ContextEvent(CompactionComplete(error=None) as fold):
            print_to_stderr(f"folded {counted(fold.messages_removed, 'message')}")
        case _:
            pass


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
        "at_limit": end.at_limit,
        "error": None if answered else {"code": end.code, "what": end.text, "fix": end.fix},
        "tools": tools,
        "context": {
            "tokens": status.filled.total if status.filled else None,
            "window": status.window,
        },
        "cost": status.cost,
        "saved": status.saved,
    }


def greeting(choice: Choice, store: str, *, first: bool) -> RenderableType:
    top = Text.assemble(
        (f"refold {__version__}", "bold"),
        ("  ", ""),
        (choice.name, ""),
        (f"  ({choice.why})" if choice.why != ASKED else "", "dim"),
    )
    if not first:
        return Group(top, Text("/help shows what you can do.", style="dim"))
    path, home = store.removeprefix("sqlite:///"), str(Path.home())
    path = path.replace(home, "~", 1) if path.startswith(home) else path
    kept = f"Every word is kept in {path}. What no longer fits the model is folded into"
    return Group(
        top,
        Text(f"{kept} a summary, and can be unfolded again."),
        Text("Enter sends, /help shows what you can do, Ctrl-C interrupts, twice it leaves."),
    )


def farewell(command: str) -> RenderableType:
    """How to come back, on a line that can be copied whole."""
    return Text(f"Come back with: {command}", no_wrap=True, overflow="ignore")
