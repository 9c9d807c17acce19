"""Writes docs/reference/cli.md from the commands themselves.

With --check it writes nothing and exits with 1 if the page is out of date.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from reference import table, write_or_check

from refold.cli.app import app

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"

EXIT_CODES = {
    0: "done",
    1: "an error: standard error says what happened and, on the next line, what to do",
    2: "wrong usage: an option, an argument or a value is not what the command takes, whatever "
    "the state of files and servers; standard error says what to write instead",
    130: "interrupted (Ctrl-C)",
    141: "output pipe closed, as by `head`",
}


def commands() -> dict[str, Any]:
    """The commands by their names, those of groups too, as typer made them."""
    return dict(_within(typer.main.get_command(app)))


def _within(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer names no type
    for name in group.commands:
        one = group.get_command(None, name)
        if getattr(one, "commands", None):
            yield from _within(one, f"{before}{name} ")
        else:
            yield f"{before}{name}", one


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
    yield from table(("code", "meaning"), ((str(code), text) for code, text in EXIT_CODES.items()))
    yield "With --json, an error of either kind is also one JSON object on standard output: `error`"
    yield "has its `code`, `what` happened and the `fix`.\n"
    yield "An error begins with `error[code]:`. Its code is one of [the errors](errors.md), or:"
    yield ""
    yield from table(
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
    yield from table(("argument", ""), ((f"`{one.metavar}`", one.help) for one in arguments))
    yield from table(
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
    yield from table(
        ("variable", "instead of", ""),
        ((f"`{name}`", f"`{option}`", text) for name, (option, text) in sorted(named.items())),
    )


def _spelling(option: Any) -> str:  # noqa: ANN401 - typer names no type
    if not option.is_flag and option.metavar is None:
        raise SystemExit(f"{option.opts[0]} takes a value: give it a metavar.")
    value = "" if option.is_flag else f" {option.metavar}"
    return ", ".join(f"`{spelled}{value}`" for spelled in option.opts)


def _has_default(option: Any) -> bool:  # noqa: ANN401 - typer names no type
    return not option.is_flag and option.default is not None


def main() -> int:
    """The command line."""
    return write_or_check(PAGE, render, "cli_reference.py")


if __name__ == "__main__":
    sys.exit(main())
