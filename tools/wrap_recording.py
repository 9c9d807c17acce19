"""Draws docs/pictures/wrap-claude.svg: `refold wrap claude` in a real terminal, from start to end.

python tools/wrap_recording.py

It needs tmux and npm, from which the real Claude Code comes. A program on loopback plays the model;
its window is small, so that the conversation is compacted twice within a minute. On its way the
script checks what a terminal must do: keys, a paste, a new size, and being suspended. The picture
moves where pictures may move, and is the end where they may not.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from xml.sax.saxutils import escape

from rich.ansi import AnsiDecoder
from rich.color import Color
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from terminal.tmux import Terminal  # noqa: E402 - it needs the line above
from terminal_pictures import LOOK  # noqa: E402 - as above

from benchmarks.coding_agents.__main__ import install  # noqa: E402 - as above
from benchmarks.coding_agents.clients import CLIENTS  # noqa: E402 - as above
from benchmarks.coding_agents.run import served  # noqa: E402 - as above
from refold.testing.upstream import (  # noqa: E402 - as above
    Call,
    Got,
    Reply,
    RequestChecker,
    ScriptedUpstream,
)

PICTURE: Final = ROOT / "docs" / "pictures" / "wrap-claude.svg"
COLUMNS, ROWS = 92, 26
SMALLER: Final = (70, 20)
NOTES: Final = 14
WINDOW: Final = 52_000
QUESTION: Final = "On which shelf does parcel 41 stand?"
SHELF: Final = "shelf 90417"
WORK: Final = "Tidy up the parcel project.\nRead the notes one by one."
DONE: Final = f"I read all {NOTES} notes: they are tidy."
_WIDE, _TALL, _SIZE, _MARGIN = 8.43, 18, 14, 14
"""Pixels: a cell, its letters, and what is around them."""
_FONTS: Final = "DejaVu Sans Mono, Menlo, Consolas, monospace"
_TICK: Final = 0.2
_LONGEST, _LAST = 1.4, 7.0
"""Seconds that one screen is shown at most, and the last one."""
Screen = list[str]


class Model:
    """Reads the notes, and later what it no longer sees."""

    def __init__(self) -> None:
        self.read = 0
        self.checker = RequestChecker()
        self.address = ""

    def __call__(self, got: Got) -> Reply:
        body = got.body
        if not body or got.path.endswith("count_tokens"):
            return Reply("")
        usage = (len(got.raw) // 4, 40)
        tools = [str(tool.get("name")) for tool in body.get("tools") or ()]
        if "Read" not in tools:
            return Reply("Parcel notes", usage=usage)
        last = json.dumps(body["messages"][-1])
        identity = f"toolu_{len(got.raw):08d}_9c1f"
        if QUESTION in last:
            name = next(name for name in tools if name.endswith("recall_search"))
            return Reply("", (Call(identity, name, {"query": "parcel 41 shelf"}),), usage)
        if SHELF in last and self.read > 1:
            return Reply(f"Parcel 41 stands on {SHELF}.", usage=usage)
        if self.read == NOTES:
            return Reply(DONE, usage=usage)
        time.sleep(0.3)  # else nobody could follow it
        path = f"notes/{self.read:02d}.md"
        self.read += 1
        return Reply(
            "",
            (Call(identity, "Bash", {"command": f"cat {path}", "description": f"Read {path}"}),),
            usage,
        )

    @contextmanager
    def at_work(self) -> Generator[str]:
        """The address at which it answers."""
        ready, end = threading.Event(), threading.Event()

        async def serve() -> None:
            async with served(ScriptedUpstream(self, keep=False, checker=self.checker)) as address:
                self.address = address
                ready.set()
                await asyncio.to_thread(end.wait)

        thread = threading.Thread(target=asyncio.run, args=(serve(),))
        thread.start()
        ready.wait()
        try:
            yield self.address
        finally:
            end.set()
            thread.join()


class Camera:
    """Takes the screens of a terminal, for as long as it is on."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self.frames: list[tuple[float, Screen]] = []
        self._clock, self._last = 0.0, time.monotonic()

    def look(self) -> None:
        """Take the screen of now, unless it is the last one still."""
        now = time.monotonic()
        self._clock += min(now - self._last, _LONGEST)
        self._last = now
        screen = self._terminal.screen(colors=True).split("\n")
        if not self.frames or _plain(screen) != _plain(self.frames[-1][1]):
            self.frames.append((self._clock, screen))

    def skip(self) -> None:
        """Leave out what happened since the last screen."""
        self._last = time.monotonic()

    def until(self, text: str, *, within: float = 180) -> None:
        """Look until the screen has a text."""
        end = time.monotonic() + within
        while text not in self._terminal.screen():
            self.look()
            if time.monotonic() > end:
                raise SystemExit(f"There never was {text!r}:\n{self._terminal.screen()}")
            time.sleep(_TICK)
        self.look()

    def type(self, text: str) -> None:
        """Type a text, some keys at a time."""
        for at in range(0, len(text), 6):
            self._terminal.type(text[at : at + 6])
            time.sleep(0.15)
            self.look()
        time.sleep(0.6)
        self.look()


def _plain(screen: Screen) -> list[str]:
    """A screen without what moves all the time: its signs of work, and seconds."""
    lines = [Text.from_ansi(line).plain.rstrip() for line in screen]
    return ["" if "esc to interrupt" in line or line[:1] in "·✢✳✶✻✽*" else line for line in lines]


def prepare(home: Path, project: Path) -> None:
    """The files of a person who has used Claude Code before, and a project."""
    (project / "notes").mkdir(parents=True)
    for nth in range(NOTES):
        lines = [
            f"parcel {nth * 90 + row} stands on shelf {10_000 + nth * 431 + row * 37 % 971}"
            for row in range(150)
        ]
        if nth == 0:
            lines[41] = f"parcel 41 stands on {SHELF}"
        (project / "notes" / f"{nth:02d}.md").write_text("\n".join(lines) + "\n")
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    (home / ".claude.json").write_text(
        json.dumps(
            {
                "hasCompletedOnboarding": True,
                "theme": "dark",
                "customApiKeyResponses": {"approved": ["sk-nobody"], "rejected": []},
                "projects": {str(project): trusted},
            }
        )
    )
    (home / ".claude").mkdir()
    allowed = {"permissions": {"allow": ["Read", "Bash(cat:*)"]}, "spinnerTipsEnabled": False}
    (home / ".claude" / "settings.json").write_text(json.dumps(allowed))
    settings = home / ".config" / "refold"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text(f'[models."claude-sonnet-4-5"]\nwindow = {WINDOW}\n')


def play(terminal: Terminal, camera: Camera) -> None:
    """The whole story; what the terminal must do is checked on the way."""
    camera.type("refold wrap claude")
    terminal.press("Enter")
    camera.until("? for shortcuts")

    # Keys are the agent's: its menu opens, and Ctrl-C does not end it.
    terminal.type("/cle")  # the whole menu is longer than what is shown of it
    terminal.wait_for("/clear")
    terminal.press("C-c")
    terminal.wait_until_gone("/clear")
    terminal.wait_until_still()
    camera.skip()

    terminal.paste(WORK)
    terminal.wait_for(WORK.splitlines()[1])  # a paste is not sent line by line
    camera.look()
    time.sleep(1)
    terminal.press("Enter")
    camera.until(DONE)
    terminal.wait_until_still()

    terminal.resize(*SMALLER)
    terminal.wait_for(DONE)
    widest = max(map(len, terminal.screen().splitlines()))
    terminal.resize(COLUMNS, ROWS)
    terminal.wait_until_still()
    if widest > SMALLER[0]:
        raise SystemExit(f"The agent did not learn the new size: {widest} columns.")

    terminal.press("C-z")
    terminal.wait_for("fg")
    terminal.type("echo in the $((40 + 2))")
    terminal.press("Enter")
    terminal.wait_for("in the 42")
    terminal.type("fg")
    terminal.press("Enter")
    terminal.wait_for(DONE)
    terminal.wait_until_still()
    camera.skip()

    camera.type(QUESTION)
    terminal.press("Enter")
    camera.until(f"stands on {SHELF}.")
    terminal.wait_until_still()
    if "\x1b[38" not in terminal.screen(colors=True):
        raise SystemExit("The agent's colors did not reach the terminal.")
    camera.type("/exit")
    terminal.press("Enter")
    camera.until("at list prices")
    camera.look()


# The picture.


def draw(frames: Sequence[tuple[float, Screen]]) -> str:
    """The moving picture: each line of a row is there for as long as it was."""
    length = frames[-1][0] + _LAST
    rows = [[*frame, *[""] * (ROWS - len(frame))][:ROWS] for _, frame in frames]
    starts = [at for at, _ in frames]
    console = Console(width=COLUMNS, color_system="truecolor", file=sys.stderr)
    rules: dict[str, str] = {}
    shapes: list[str] = []
    for row in range(ROWS):
        place = 0
        for line, same in groupby(frame[row] for frame in rows):
            count = len([*same])
            first, last, place = place, place + count, place + count
            drawn = "".join(_cells(line, row, console))
            if not drawn:
                continue
            whole = count == len(rows)
            ends = last == len(rows)
            name = "" if whole else f"f{first}t{last}"
            if not whole:
                begin = 100 * starts[first] / length
                end = 0.0 if ends else 100 * starts[last] / length
                rules[name] = _rule(name, begin, end)
            hidden = "" if ends else ' visibility="hidden"'
            style = f' style="animation:{name} {length:.1f}s step-end infinite"' if name else ""
            shapes.append(f"<g{hidden}{style}>{drawn}</g>")
    width, height = COLUMNS * _WIDE + 2 * _MARGIN, ROWS * _TALL + 2 * _MARGIN
    ground, ink = LOOK.background_color.hex, LOOK.foreground_color.hex
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
                'role="img" aria-label="A terminal in which refold wrap runs Claude Code">'
            ),
            f"<style>text{{font:{_SIZE}px {_FONTS};fill:{ink};white-space:pre}}",
            "@media(prefers-reduced-motion:reduce){g{animation:none!important}}",
            *rules.values(),
            "</style>",
            f'<rect width="100%" height="100%" rx="8" fill="{ground}"/>',
            *shapes,
            "</svg>",
            "",
        ]
    )


def _rule(name: str, begin: float, end: float) -> str:
    """Shown from a percentage of the time to another; 0 is the end."""
    before = "0%{visibility:hidden}" if begin else ""
    after = f"{end:.2f}%{{visibility:hidden}}" if end else ""
    return f"@keyframes {name}{{{before}{begin:.2f}%{{visibility:visible}}{after}}}"


def _cells(line: str, row: int, console: Console) -> Iterator[str]:
    """The rectangles and letters of a line."""
    decoded = next(iter(AnsiDecoder().decode(line)), Text())
    column, top = 0, _MARGIN + row * _TALL
    for segment in decoded.render(console):
        text, style = segment.text.rstrip("\n"), segment.style
        width = Text(text).cell_len
        left = _MARGIN + column * _WIDE
        column += width
        fill = _hex(style.color if style else None, foreground=True)
        ground = _hex(style.bgcolor if style else None, foreground=False)
        if style and style.reverse:
            fill, ground = ground or LOOK.background_color.hex, fill or LOOK.foreground_color.hex
        if ground and width:
            yield (
                f'<rect x="{left:.1f}" y="{top}" width="{width * _WIDE:.1f}" height="{_TALL}" '
                f'fill="{ground}"/>'
            )
        if text.strip():
            looks = [f' fill="{fill}"'] if fill else []
            looks += [' font-weight="bold"'] if style and style.bold else []
            looks += [' opacity=".6"'] if style and style.dim else []
            yield (
                f'<text x="{left:.1f}" y="{top + _SIZE}" textLength="{width * _WIDE:.1f}"'
                f"{''.join(looks)}>{escape(text)}</text>"
            )


def _hex(color: Color | None, *, foreground: bool) -> str:
    if color is None or color.is_default:
        return ""
    return color.get_truecolor(LOOK, foreground).hex


def main() -> None:
    """Play it, and write the picture."""
    programs = install([CLIENTS["claude-code"].package])
    model = Model()
    with TemporaryDirectory() as made, model.at_work() as address:
        folder = Path(made)
        path = f"{programs}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        given: dict[str, Any] = {
            "PS1": "$ ",
            "REFOLD_STORE": "",
            "PATH": path,
            "IS_SANDBOX": "1",
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "sk-nobody",
            "ANTHROPIC_MODEL": "claude-sonnet-4-5",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        with closing(Terminal(folder, given)) as terminal:
            project = terminal.home / "parcels"
            prepare(terminal.home, project)
            terminal.start(["bash", "--norc", "-i"], COLUMNS, ROWS, cwd=project)
            terminal.wait_for("$")
            camera = Camera(terminal)
            camera.look()
            play(terminal, camera)
            print(terminal.screen())
    if model.checker.faults:
        raise SystemExit(f"Requests were refused: {model.checker.faults[:3]}")
    PICTURE.write_text(draw(camera.frames), encoding="utf-8")
    print(f"{len(camera.frames)} screens, {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
