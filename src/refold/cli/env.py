"""`refold env`: what to set so that a program's requests come through the gateway."""

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Annotated, Final, Literal, NamedTuple

import typer

from refold.cli.outcome import exit_on_error, wrong_usage
from refold.cli.up import address_in_use
from refold.errors import InvalidInput

Shell = Literal["sh", "fish", "powershell"]
_MAX_PORT: Final = 65_535
_MODEL: Final = "gpt-5-mini"


def _nothing(_address: str) -> dict[str, str]:
    return {}


def _no_text(_address: str) -> str:
    return ""


class _Program(NamedTuple):
    """A program, and what is set in it."""

    variables: Callable[[str], Mapping[str, str]] = _nothing
    where: str = ""
    """The place of its settings, where variables are not enough."""
    text: Callable[[str], str] = _no_text
    """What is set there."""
    note: str = ""


def _anthropic(address: str) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": address}


def _openai(address: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{address}/v1"}


def _both(address: str) -> dict[str, str]:
    return _anthropic(address) | _openai(address)


def _aider(address: str) -> dict[str, str]:
    return {"OPENAI_API_BASE": f"{address}/v1"} | _anthropic(address)


def _codex(address: str) -> str:
    return f'openai_base_url = "{address}/v1"'


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2)


def _opencode(address: str) -> str:
    options = {"options": {"baseURL": f"{address}/v1"}}
    return _pretty({"provider": {"anthropic": options, "openai": options}})


def _vscode(address: str) -> str:
    model = {
        "id": _MODEL,
        "name": "GPT-5 mini through Refold",
        "url": f"{address}/v1",
        "toolCalling": True,
        "vision": True,
        "maxInputTokens": 272_000,
        "maxOutputTokens": 128_000,
    }
    group = {"name": "Refold", "vendor": "customendpoint", "apiType": "responses"}
    return _pretty([{**group, "models": [model]}])


def _continue(address: str) -> str:
    return (
        "models:\n"
        "  - name: Claude through Refold\n"
        "    provider: anthropic\n"
        "    model: claude-sonnet-4-5\n"
        f"    apiBase: {address}/v1\n"
        "    apiKey: ${{ secrets.ANTHROPIC_API_KEY }}"
    )


def _zed(address: str) -> str:
    providers = {"anthropic": {"api_url": address}, "openai": {"api_url": f"{address}/v1"}}
    return _pretty({"language_models": providers})


PROGRAMS: Final[Mapping[str, _Program]] = {
    "claude": _Program(_anthropic),
    "codex": _Program(
        where="~/.codex/config.toml, above the first table",
        text=_codex,
        note="Signed in with ChatGPT, use /backend-api/codex instead of /v1.",
    ),
    "opencode": _Program(where="~/.config/opencode/opencode.json", text=_opencode),
    "qwen": _Program(_openai),
    "aider": _Program(_aider),
    "llm": _Program(_openai),
    "shell": _Program(_both),
    "vscode": _Program(
        where="chatLanguageModels.json (Chat: Manage Language Models, Add, Custom Endpoint)",
        text=_vscode,
        note="VS Code asks for the provider's key itself. Copilot's own models cannot be routed.",
    ),
    "cursor": _Program(
        note="Cursor's servers send its requests, and they cannot reach a gateway on this machine. "
        "Override OpenAI Base URL works with an address that they reach only: "
        "run refold serve with keys on such a server.",
    ),
    "cline": _Program(
        where="Cline's settings, API Provider Anthropic, Use custom base URL",
        text=str,
        note="For the provider OpenAI Compatible, the Base URL ends with /v1.",
    ),
    "continue": _Program(where="~/.continue/config.yaml", text=_continue),
    "zed": _Program(where="settings.json of Zed", text=_zed),
}


def env(
    *,
    program: Annotated[
        str,
        typer.Argument(metavar="PROGRAM", help=", ".join(PROGRAMS), show_default=False),
    ],
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=1,
            max=_MAX_PORT,
            help="The gateway's port.",
            show_default="that of refold up, else serve.port",
        ),
    ] = None,
    shell: Annotated[
        Shell,
        typer.Option(
            "--shell", metavar="sh|fish|powershell", help="Print variables for this shell."
        ),
    ] = "sh",
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Print what to set to route a program's requests through the gateway.

    Nothing is changed. It prints variables for your shell, or an editor's settings with the place
    where they belong. The program keeps its own key.

    Example: eval "$(refold env claude)"
    """
    with exit_on_error():
        with wrong_usage():
            if program not in PROGRAMS:
                raise InvalidInput(
                    f"Refold does not know where {program!r} has the address of its model.",
                    f"Name {', '.join(PROGRAMS)}; any other program may take those of shell.",
                )
        address = f"http://127.0.0.1:{port}" if port else address_in_use()
        known = PROGRAMS[program]
        variables, text = known.variables(address), known.text(address)
        if as_json:
            value = {"variables": variables, "where": known.where, "text": text}
            typer.echo(json.dumps({**value, "note": known.note}, indent=2))
            return
        for name, setting in variables.items():
            typer.echo(_line(shell, name, setting))
        if text:
            typer.echo(f"# In {known.where}:\n{text}")
        if known.note:
            typer.echo(f"# {known.note}")


def _line(shell: Shell, name: str, value: str) -> str:
    match shell:
        case "fish":
            return f"set -gx {name} {shlex.quote(value)}"
        case "powershell":
            return f"$env:{name} = '{value}'"
        case _:
            return f"export {name}={shlex.quote(value)}"
