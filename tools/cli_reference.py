"""Writes docs/reference/cli.md from the commands themselves.

With --check it writes nothing and exits with 1 if the page is out of date.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from refold.cli.app import app

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"

EXIT_CODES = {
    0: "done",
    1: "an error: standard error says what happened and, on the next line, what to do",
    2: "wrong usage: standard error shows the command's usage",
    130: "interrupted (Ctrl-C)",
    141: "whoever read the output has closed it, as `head` does",
}


def commands() -> dict[str, Any]:
    """The commands by their names, as typer made them."""
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


def render() -> str:
    """The whole page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "<!-- Made by tools/cli_reference.py from the commands: do not edit. -->"
    yield "# The command line\n"
    yield "`pip install 'refold[cli]'` brings the `refold` command."
    yield "`refold --install-completion` teaches your shell to complete it.\n"
    for name, command in commands().items():
        yield from _command(name, command)
    yield from _environment()
    yield "## Exit codes\n"
    yield from _table(("code", "meaning"), ((str(code), text) for code, text in EXIT_CODES.items()))
    yield "An error begins with `error[code]:`. Its code is one of [the errors](errors.md), or:"
    yield ""
    yield from _table(
        ("code", "meaning"),
        [
            ("`file`", "the operating system refused to read or write a file"),
            ("`encoding`", "a name or an address is not UTF-8 text"),
            ("`not-installed`", "the command needs a package that is not installed"),
        ],
    )


def _command(name: str, command: Any) -> Iterator[str]:  # noqa: ANN401 - typer names no type
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join(["refold", name, *(each.metavar for each in arguments), "[OPTIONS]"])
    yield f"## refold {name}\n"
    yield f"```text\n{usage}\n```\n"
    yield f"{command.help.strip()}\n"
    yield from _table(("argument", ""), ((f"`{one.metavar}`", one.help) for one in arguments))
    yield from _table(
        ("option", "", "default"),
        (
            (_spelling(one), one.help, f"`{one.default}`" if _has_default(one) else "")
            for one in options
            if one.name != "help"
        ),
    )


def _environment() -> Iterator[str]:
    named = {
        one.envvar: (one.opts[0], one.help)
        for command in commands().values()
        for one in command.params
        if one.envvar
    }
    yield "## Environment variables\n"
    yield from _table(
        ("variable", "stands for", ""),
        ((f"`{name}`", f"`{option}`", text) for name, (option, text) in sorted(named.items())),
    )


def _spelling(option: Any) -> str:  # noqa: ANN401 - typer names no type
    value = "" if option.is_flag else f" {option.metavar}"
    return ", ".join(f"`{spelled}{value}`" for spelled in option.opts)


def _has_default(option: Any) -> bool:  # noqa: ANN401 - typer names no type
    return not option.is_flag and option.default is not None


def _table(head: tuple[str, ...], rows: Any) -> Iterator[str]:  # noqa: ANN401 - any rows of text
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    options = parser.parse_args()
    if not options.check:
        PAGE.write_text(render(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != render():
        print(f"{PAGE.name} is out of date: run `python tools/cli_reference.py`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
