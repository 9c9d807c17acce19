"""Draws docs/pictures/explain-a-session.svg: `refold explain` of an invented session."""

import asyncio
import io
import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI

from refold.cli.output import print_colored
from refold.log import (
    Author,
    FoldCompleted,
    FoldStarted,
    Log,
    Message,
    Opened,
    PartRef,
    Pinned,
    Rewound,
    Span,
)
from refold.stores import MemoryStore
from refold.view.budget import Budget
from refold.view.explain import Explanation, explain, pieces
from refold.view.profiles import BALANCED
from refold.view.project import project
from refold.view.view_input import ViewInput
from refold.wire import wire_for

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "explain-a-session.svg"
WIDTH = 100
SUMMARY = "The nightly import fails since Tuesday: dates of the Tallinn branch have no time zone."
BUDGET = Budget(window=16_000, reserve=2_000, tools=640)


class Quarters:
    """Four characters a token: the picture need not change when counting gets better."""

    name = "four characters a token"
    spread = 0.1

    def text(self, text: str, kind: str = "text") -> int:
        """The tokens of a text."""
        del kind
        return -(-len(text) // 4)

    def part(self, shape: Any) -> int:  # noqa: ANN401 - a shape, or what looks like one
        """The tokens of a part."""
        return self.text(shape.text) + self.text(shape.tool or "")


class _Writer:
    """Writes an agent's session, message by message."""

    def __init__(self, log: Log, session: str) -> None:
        self._author = Author()
        self._log = log
        self._session = session
        self._calls = 0

    async def add(self, *values: Any) -> int:  # noqa: ANN401 - any kind of entry
        drafts = [self._author.draft(value) for value in values]
        return (await self._log.append(self._session, drafts, expected=None)).last

    async def say(self, role: str, content: str, **more: object) -> int:
        message = {"role": role, "content": content, **more}
        return await self.add(Message(json.dumps(message, ensure_ascii=False).encode()))

    async def call(self, tool: str, given: dict[str, str], result: str | None) -> int:
        self._calls += 1
        name = f"call-{self._calls}"
        asked = {"name": tool, "arguments": json.dumps(given)}
        calls = [{"id": name, "type": "function", "function": asked}]
        last = await self.say("assistant", "", tool_calls=calls)
        if result is not None:
            last = await self.say("tool", result, tool_call_id=name)
        return last


def rows(table: str, count: int) -> str:
    """Something long that a tool might return."""
    return "\n".join(
        f"{table}/{1000 + n}.csv  line {7 * n + 3}  2024-03-{1 + n % 28:02} 08:{n % 60:02}  ok"
        for n in range(count)
    )


async def write(log: Log, session: str) -> None:
    """An agent that looks for a fault: folded, pinned, rewound, cut, and once interrupted."""
    writer = _Writer(log, session)
    await writer.add(Opened("openai-chat", "balanced", "The nightly import"))
    await writer.say("system", "You look after the imports of a parcel service. Be brief.")
    first = await writer.say("user", "The nightly import fails since Tuesday. Find out why.")
    await writer.call("read_log", {"day": "Tuesday"}, rows("import/tallinn", 60))
    await writer.call("read_log", {"day": "Wednesday"}, rows("import/tallinn", 40))
    last = await writer.say("assistant", "The dates of the Tallinn branch have no time zone.")
    fold, spans = UUID(int=7), (Span(first, last),)
    await writer.add(Pinned((PartRef(first, 0),)), FoldStarted(fold, spans, "manual"))
    await writer.add(FoldCompleted(fold, spans, SUMMARY))
    await writer.say("user", "Which other branches send dates like that?")
    await writer.call("search", {"pattern": "no time zone"}, rows("import/riga", 90))
    await writer.call("search", {"pattern": "no offset"}, rows("import/vilnius", 80))
    last = await writer.say("assistant", "Riga and Vilnius, since the same release.")
    await writer.say("user", "Delete their files.")
    await writer.say("assistant", "I would rather not: they are the only copies.")
    await writer.add(Rewound(last))
    await writer.say("user", "Read their dates as Eastern European Time, and run the import.")
    patch = "\n".join(f"+    zone = ZONES[{branch!r}]" for branch in ("riga", "vilnius") * 20)
    await writer.call("edit_file", {"path": "dates.py", "patch": patch}, "edited")
    await writer.call("run_import", {"branch": "riga"}, rows("done/riga", 55))
    await writer.call("run_import", {"branch": "vilnius"}, None)
    await writer.say("user", "Stop, that is enough. Did Riga work?")


async def explained(log: Log, session: str) -> Explanation:
    """The explanation of its next request."""
    visible = await log.visible(session)
    inputs = ViewInput.of(visible, wire_for("openai-chat"), Quarters())
    rewrite = BALANCED.rewrite.model_copy(update={"target_tokens": 2_400})
    plan = project(inputs, BALANCED.model_copy(update={"rewrite": rewrite}), BUDGET)
    entries = await log.read(session)
    return explain(inputs, plan, BUDGET, info=visible.info, model="any", entries=entries)


async def _explained() -> Explanation:
    log = MemoryStore().log()
    await write(log, "imports-7")
    return await explained(log, "imports-7")


def draw(found: Explanation) -> str:
    """The picture. It names no font of the network, so that it looks the same without one."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    print_colored(pieces(found, WIDTH), console)
    template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    template = template.replace("Fira Code, monospace", "DejaVu Sans Mono, Menlo, monospace")
    return console.export_svg(
        title="refold explain imports-7", theme=MONOKAI, code_format=template, unique_id="explain"
    )


def main() -> None:
    """The command line."""
    found = asyncio.run(_explained())
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(found), encoding="utf-8")
    print(found.as_text(WIDTH))


if __name__ == "__main__":
    main()
