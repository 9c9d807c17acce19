import asyncio
import json
import sys
from typing import Annotated

import typer

from refold.cli.options import full_terminal
from refold.cli.outcome import FAILED, exit_on_error, require_extra


def demo(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")
    ] = False,
    store: Annotated[
        str,
        typer.Option(
            "--store",
            metavar="ADDRESS",
            help="Save the session there, as `demo`: sqlite:///FILE.",
            show_default="nowhere: it ends with the demo",
        ),
    ] = "",
) -> None:
    """Watch a conversation outgrow its model's window and continue. No key is needed.

    A scripted conversation runs through the real code: folds are made, counted and priced as in
    your own sessions. At the end, the user asks for a detail that was folded long before.

    Example: refold demo
    """
    with exit_on_error(), require_extra("chat"):
        if as_json or not full_terminal():
            code = 0 if asyncio.run(_print(store, as_json=as_json)) else FAILED
        else:
            code = _play_on_screen(store)
    raise typer.Exit(code)


def _play_on_screen(store: str) -> int:
    from refold.cli.chat.run import surface_for  # noqa: PLC0415 - it needs the extra `chat`

    surface = surface_for(plain=False)

    async def main() -> int:
        from refold.cli.demo.show import on_screen  # noqa: PLC0415 - as above

        return await on_screen(surface, store)

    return surface.host(main)


async def _print(address: str, *, as_json: bool) -> bool:
    from refold.cli.demo.play import SESSION, play  # noqa: PLC0415 - as above
    from refold.cli.demo.script import PACE  # noqa: PLC0415 - as above
    from refold.cli.demo.show import Printer, demo_store  # noqa: PLC0415 - as above

    async with demo_store(address, SESSION) as store:
        if as_json:
            played = await play(store=store)
            typer.echo(json.dumps(played.as_json(), indent=2))
            return played.good
        printer = Printer(lambda text: typer.echo(text, nl=False))
        pace = PACE if sys.stdout.isatty() else 0
        played = await play(store=store, pace=pace, hear=printer)
        printer.end()
        typer.echo(f"\n{played.as_text()}")
        return played.good
