"""One turn without a terminal: the answer on standard output, the rest on standard error."""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, cast

from rich.console import Group, RenderableType
from rich.text import Text

from refold import __version__
from refold.cli.chat.clean import Cleaner, cleaned
from refold.cli.chat.conversation import Conversation, TurnEnd, new_name
from refold.cli.chat.endpoint import EndpointNotes, endpoint_of
from refold.cli.chat.events import Called, Happened, Heard, Returned, Said
from refold.cli.chat.models.providers import ASKED, Choice
from refold.cli.outcome import FAILED, INTERRUPTED, unwritten
from refold.fold.events import CompactionComplete

_CODES = {"answered": 0, "interrupted": INTERRUPTED, "limit": FAILED, "failed": FAILED}


async def printed(conversation: Conversation, prompt: str, *, as_json: bool) -> int:
    """Say the prompt and print what comes of it; the exit code."""
    if not conversation.name:
        conversation.name = new_name()
    output = _Output()
    hearing = _Printing(output, live=not as_json)
    endpoint = endpoint_of(conversation.model)
    async with EndpointNotes().during_turn(conversation.log, conversation.name, endpoint):
        end = await conversation.turn(prompt, hearing.hear)
    if as_json:
        output.write(f"{output.json(_as_json(conversation, end, hearing.tools))}\n")
    else:
        output.write("\n")
        if end.how != "answered":
            _aside(f"error[{end.code or end.how}]: {end.text}\n{end.fix}")
    return _CODES[end.how] if output.lost is None else unwritten(output.lost)


class _Output:
    """Standard output. Once it takes no more, the turn goes on without it."""

    def __init__(self) -> None:
        self._file = cast("TextIO | None", sys.stdout)
        self._cleaner = Cleaner() if self._file is not None and self._file.isatty() else None
        self.lost: OSError | None = None if self._file is not None else BrokenPipeError()
        """Why it takes no more."""

    def write(self, text: str) -> None:
        """Write it now; on a terminal, without what the terminal would obey."""
        if self._file is None or self.lost is not None:
            return
        try:
            self._file.write(text if self._cleaner is None else self._cleaner.feed(text))
            self._file.flush()
        except OSError as error:
            self.lost = OSError(error.errno, error.strerror, "standard output")

    def json(self, value: dict[str, Any]) -> str:
        """The value on one line; a terminal gets an escape for what it would obey."""
        text = json.dumps(value, ensure_ascii=False)
        unsafe = self._cleaner is not None and cleaned(text) != text
        return json.dumps(value) if unsafe else text


class _Printing:
    """Prints a turn as it goes on, and keeps which tools were called."""

    def __init__(self, output: _Output, *, live: bool) -> None:
        self._output = output
        self._live = live
        self.tools: list[dict[str, Any]] = []

    def hear(self, heard: Heard) -> None:
        """Print it, unless all is printed at the end."""
        if isinstance(heard, Called):
            self.tools.append({"tool": heard.tool, "arguments": heard.arguments})
        if self._live:
            self._print(heard)

    def _print(self, heard: Heard) -> None:
        match heard:
            case Said(text):
                self._output.write(text)
            case Called(_, tool, arguments):
                _aside(f"calls {tool} {arguments}")
            case Returned(_, tool, _, seconds, failed):
                _aside(f"{tool} {'failed' if failed else 'answered'} in {seconds:.1f} s")
            case Happened(CompactionComplete(error=None) as event):
                _aside(f"compacted {event.messages_removed} messages")
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
    with suppress(OSError, AttributeError):  # nobody may read it, or there is no such output
        sys.stderr.write(f"{cleaned(text)}\n")


# What a chat says first, and last.


def greeting(choice: Choice, store: str, *, first: bool) -> RenderableType:
    """One line; the first time, three that explain it all."""
    top = Text.assemble(
        (f"refold {__version__}", "bold"),
        ("  ", ""),
        (choice.name, ""),
        (f"  ({choice.why})" if choice.why != ASKED else "", "dim"),
    )
    if not first:
        return Group(top, Text("/help shows what you can do.", style="dim"))
    kept = f"Every word is kept in {_shorter(store)}. What no longer fits the model is folded into"
    return Group(
        top,
        Text(f"{kept} a summary, and can be unfolded again."),
        Text("Enter sends, /help shows what you can do, Ctrl-C interrupts, twice it leaves."),
    )


def farewell(command: str) -> RenderableType:
    """How to come back, on a line that can be copied whole."""
    return Text(f"Come back with: {command}", no_wrap=True, overflow="ignore")


def _shorter(store: str) -> str:
    path = store.removeprefix("sqlite:///")
    home = str(Path.home())
    return path.replace(home, "~", 1) if path.startswith(home) else path
