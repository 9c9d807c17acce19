"""Draws docs/pictures/terminal-*.svg: screens of a real terminal, with invented conversations.

python tools/terminal_pictures.py [NAME …]

It needs tmux. A program on loopback plays the model; all the rest is as it is for everybody.
"""

import argparse
import io
import json
import re
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from pictured_talk import (  # noqa: E402 - it needs the line above
    AFTER,
    ANSWERS,
    EARLIER,
    LATER,
    MODEL,
    PROJECT,
    SAID,
    SETTINGS,
    WINDOW,
    recording,
    remember,
)
from terminal.pieces import Gate  # noqa: E402 - found by the line above
from terminal.provider import Provider  # noqa: E402 - as above
from terminal.tmux import Terminal  # noqa: E402 - as above

PICTURES = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 100, 30
_CELL = 0.602
"""Of the font: a cell's width to its height, so that no letter must be stretched."""
_FONTS = "DejaVu Sans Mono, Menlo, Consolas, DejaVu Sans, monospace"
LOOK = TerminalTheme(
    (24, 26, 31),
    (214, 217, 224),
    [
        *((40, 44, 52), (224, 108, 117), (140, 190, 110), (217, 180, 106)),
        *((97, 165, 230), (198, 120, 221), (86, 182, 194), (171, 178, 191)),
    ],
)


class Stage:
    """A person's terminal, home and project, and who answers there."""

    def __init__(self, folder: Path) -> None:
        self.provider = Provider(ANSWERS, model=MODEL, window=WINDOW)
        self.provider.start()
        self.terminal = Terminal(folder, {"REFOLD_STORE": "", "PS1": "$ "})
        self.project = self.terminal.home / "parcels"
        for name, text in PROJECT.items():
            path = self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        own = self.terminal.home / ".config/refold/config.toml"  # prices are not a project's to set
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(SETTINGS, encoding="utf-8")

    def start(self, line: str, *, rows: int = ROWS, env: Mapping[str, str] | None = None) -> None:
        """Type a command into a shell, in the project's folder."""
        self.terminal.start(
            f"printf '$ %s\\n' {_quoted(line)}; {line}; exec cat",
            COLUMNS,
            rows,
            {"OPENAI_BASE_URL": self.provider.url, **(env or {})},
            self.project,
        )

    def say(self, text: str, *, shows: str) -> None:
        """Type a line, and wait for what comes of it."""
        self.terminal.type(text)
        self.terminal.press("Enter")
        self.terminal.wait_for(shows)
        self.terminal.wait_until_still()

    def talk(self, **env: str) -> None:
        """The whole conversation, up to where a fold is near."""
        self.start("refold chat night-runs --files .", env=env)
        self.terminal.wait_for("/help")
        for prompt, end in SAID:
            self.say(prompt, shows=end)

    def close(self) -> None:
        """Close all."""
        self.terminal.close()
        self.provider.stop()


def first_run(stage: Stage) -> None:
    """The three lines, a question, and the tools at work."""
    stage.start("refold chat --files .")
    stage.terminal.wait_for("/help")
    prompt, end = SAID[0]
    stage.say(prompt, shows=end)


def folding(stage: Stage) -> None:
    """While the past is folded, and the person types on."""
    stage.provider.summary = [Gate("held"), "never"]
    stage.talk(REFOLD_SUMMARIZER="primary")
    stage.terminal.type(LATER[0])
    stage.terminal.press("Enter")
    stage.terminal.wait_for("Compacting")
    stage.terminal.type("Then tell me how a test of the fix would look")
    stage.terminal.wait_for("history 3 s")


def status_line(stage: Stage) -> None:
    """After a fold: what it made room for, and what it saved."""
    stage.talk()
    stage.say(LATER[0], shows=LATER[1])
    for prompt, end in AFTER:
        stage.say(prompt, shows=end)


def context(stage: Stage) -> None:
    """What the window is filled with."""
    stage.talk()
    stage.say("/context", shows="free")


def fold_preview(stage: Stage) -> None:
    """What a fold would do, before it does."""
    stage.talk()
    stage.say("/compact the queue of the night", shows="Fold now?")


def resume_picker(stage: Stage) -> None:
    """Sessions to go on with."""
    for name, days, said in EARLIER:
        remember(stage.terminal.home, name, days, said)
    stage.start("refold chat --resume")
    stage.terminal.wait_for(EARLIER[0][0])
    stage.terminal.press("Down")
    stage.terminal.wait_until_still()


def lab(stage: Stage) -> None:
    """What each policy would have cost on a recorded session."""
    path = stage.project / "nights.json"
    path.write_text(json.dumps(recording()), encoding="utf-8")
    stage.start("refold lab nights.json", rows=60)
    stage.terminal.wait_for("What was read", timeout=120)
    stage.terminal.wait_until_still(2)


def demo(stage: Stage) -> None:
    """The demo, at its end."""
    stage.start("refold demo", rows=44)
    stage.terminal.wait_for("each word", timeout=120)
    stage.terminal.wait_until_still(1)


SCENES: dict[str, Callable[[Stage], None]] = {
    "first-run": first_run,
    "folding": folding,
    "status-line": status_line,
    "context": context,
    "fold-preview": fold_preview,
    "resume-picker": resume_picker,
    "lab": lab,
    "demo": demo,
}


@contextmanager
def stage() -> Generator[Stage]:
    """A stage of one's own for each picture, so that any can be made alone."""
    with TemporaryDirectory() as folder, closing(Stage(Path(folder))) as made:
        yield made


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def draw(screen: str, name: str) -> str:
    """The picture of a screen. It names no font of the network."""
    console = Console(record=True, width=COLUMNS + 2, file=io.StringIO(), force_terminal=True)
    for line in AnsiDecoder().decode(screen):  # a colour may go on in the next line
        console.print(Text.assemble(" ", line), crop=False, no_wrap=True, overflow="ignore")
    template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    template = template.replace("Fira Code, monospace", _FONTS)
    template = template.replace("font-size: 18px;\n        font-weight: bold;", "font-size: 14px;")
    template = template.replace(
        "font-family: arial", "font-family: DejaVu Sans, Helvetica, sans-serif"
    )
    svg = console.export_svg(
        title="refold",
        theme=LOOK,
        code_format=template,
        font_aspect_ratio=_CELL,
        unique_id=name,
    )
    # The three buttons of a window would be make-believe.
    return re.sub(r'<g transform="translate\(26,22\)">.*?</g>', "", svg, flags=re.DOTALL)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCENES))
    names = parser.parse_args().names or list(SCENES)
    for name in names:
        with stage() as made:
            SCENES[name](made)
            screen = made.terminal.screen(colors=True)
        print(f"{name}\n{Text.from_ansi(screen).plain}")
        picture = PICTURES / f"terminal-{name}.svg"
        picture.write_text(draw(screen, f"terminal-{name}"), encoding="utf-8")


if __name__ == "__main__":
    main()
