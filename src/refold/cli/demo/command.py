"""`refold demo`."""

import asyncio
import json
import sys
from typing import Annotated

import typer

from refold.cli.options import able
from refold.cli.outcome import FAILED, explained, needing


def demo(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what came of it as JSON, and nothing else.")
    ] = False,
    store: Annotated[
        str,
        typer.Option(
            "--store",
            metavar="ADDRESS",
            help="Keep the session there, as `demo`: sqlite:///FILE.",
            show_default="nowhere: it ends with the demo",
        ),
    ] = "",
) -> None:
    """Watch a conversation that is longer than its model's window: no key is needed.

    A written conversation is played through the real thing: folds are made, counted and priced as
    they are in yours. At the end it is asked for a detail that was folded away long before.

    Example: refold demo
    """
    with explained(), needing("chat"):
        if as_json or not able():
            code = 0 if asyncio.run(_play(store, as_json=as_json)) else FAILED
        else:
            code = _watched(store)
    raise typer.Exit(code)


def _watched(store: str) -> int:
    """In a terminal: the play, and then the chat is theirs."""
    from refold.cli.chat.run import surface_for  # noqa: PLC0415 - it needs the extra `chat`

    surface = surface_for(plain=False)

    async def main() -> int:
        from refold.cli.demo.show import on_screen  # noqa: PLC0415 - as above

        return await on_screen(surface, store)

    return surface.host(main)


async def _play(address: str, *, as_json: bool) -> bool:
    from refold.cli.demo.model import PACE  # noqa: PLC0415 - as above
    from refold.cli.demo.play import SESSION, play  # noqa: PLC0415 - as above
    from refold.cli.demo.show import Printing, kept  # noqa: PLC0415 - it needs the extra `chat`

    async with kept(address, SESSION) as store:
        if as_json:
            played = await play(store=store)
            typer.echo(json.dumps(played.as_json(), indent=2))
            return played.good
        printing = Printing(lambda text: typer.echo(text, nl=False))
        pace = PACE if sys.stdout.isatty() else 0
        played = await play(store=store, pace=pace, hear=printing)
        printing.end()
        typer.echo(f"\n{played.as_text()}")
        return played.good
