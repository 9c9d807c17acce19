"""What a chat says first, and last."""

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from refold import __version__
from refold.cli.chat.models.providers import ASKED, Choice


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
