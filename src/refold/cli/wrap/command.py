"""`refold wrap`: its options, and what it says before the agent starts."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from refold.cli.left_out import print_left_out
from refold.cli.options import STORE, ProfileChoice, StoreOption, own_store, where_is
from refold.cli.outcome import exit_on_error, failed, require_extra
from refold.cli.wrap.agents import AGENTS, Agent, Endpoint, Host, Launch, agent_for, launch
from refold.cli.wrap.processes import MEMORY, GatewayKeeper, run_agent
from refold.cli.wrap.traffic import closing_lines, traffic_json
from refold.settings import Settings, load_settings
from refold.stores.sql import without_password
from refold.user_files import state_folder, write_whole

_PLACEHOLDER: Final = "http://127.0.0.1:PORT/SECRET"
_PATIENCE: Final = 10.0
"""Seconds that an agent may take to say something about itself."""
_SQLITE: Final = "sqlite:///"
_MAX_STORES: Final = 100
_NOT_FOUND: Final = 127


def wrap(  # noqa: PLR0913 - an option each
    *,
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="AGENT",
            help=f"{', '.join(AGENTS)}, or any command; then its own arguments.",
            show_default=False,
        ),
    ],
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the agent's newest conversation in this folder."),
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Keep the conversation in the store.")
    ] = True,
    show: Annotated[
        bool,
        typer.Option(
            "--print", help="Show the variables and flags for the agent, and start nothing."
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="With --print, print it as JSON; else end with JSON on standard error.",
        ),
    ] = False,
    store: StoreOption = STORE,
    profile: ProfileChoice = None,
) -> None:
    """Run a coding agent behind a gateway of its own, which keeps and compacts its conversation.

    The agent works as usual, with its own login, in this terminal. It gets the gateway's address
    through environment variables and flags: no file is changed, and the gateway stops with the
    agent. Its model can search and reread what was compacted.

    Example: refold wrap claude
    """
    with exit_on_error(), require_extra("wrap"):
        if find_spec("uvicorn") is None:  # the gateway's process needs it, and what comes with it
            raise ModuleNotFoundError(name="uvicorn")
        name, *arguments = command
        agent = agent_for(name)
        program = shutil.which(name)
        if program is None:
            raise _not_found(agent, name)
        settings = load_settings(profile)
        where = _Where(store, profile, keep)
        start = partial(launch, agent, host_of(program), arguments=arguments, resume=resume)
        if show:
            started = start(Endpoint(_PLACEHOLDER, _has_recall()))
            shown = _launch_json if as_json else _launch_text
            typer.echo(shown(name, started, without_password(where.address)))
            return
        print_left_out(settings)
        raise typer.Exit(_run([name, program], start, settings, where, as_json=as_json))


@dataclass(frozen=True, slots=True)
class _Where:
    """Where the conversation is kept, and how."""

    store: str
    profile: str | None
    keep: bool

    @property
    def address(self) -> str:
        """Of the store, from any folder."""
        address = where_is(self.store) if self.keep else MEMORY
        path = address.removeprefix(_SQLITE)
        return address if path == address else _SQLITE + str(Path(path).absolute())


def _run(
    named: Sequence[str],
    start: Callable[[Endpoint], Launch],
    settings: Settings,
    where: _Where,
    *,
    as_json: bool,
) -> int:
    name, program = named
    keeper = GatewayKeeper(where.address, where.profile, Path.cwd(), name)
    endpoint = Endpoint(keeper.address, _has_recall())
    started = start(endpoint)
    if where.keep:
        if where.address == f"{_SQLITE}{own_store()}":
            own_store().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _announce(where.address, settings)
    notes = [*started.notes]
    if not endpoint.recall:
        notes.append("The model cannot search what was compacted: pip install 'refold[wrap]'")
    _say(notes)
    upstreams = [upstream.model_dump(mode="json") for upstream in started.upstreams]
    keeper.start(upstreams, started.windows)
    try:
        code = run_agent([program, *started.arguments], started.environment, keeper)
    finally:
        keeper.end()
    if as_json:
        typer.echo(json.dumps(traffic_json(keeper.traffic)), err=True)
    else:
        _say(closing_lines(keeper.traffic, keep=where.keep))
    if keeper.given_up:
        again = shlex.join(["refold", "wrap", "--resume", name])
        _say([f"The gateway failed: {keeper.last_errors()}", f"Continue with: {again}"])
    return code


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(f"refold: {line}", err=True)


def _has_recall() -> bool:
    return find_spec("mcp") is not None


def host_of(program: str) -> Host:
    """What an agent would find in this process's place."""

    def read(path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    def run(arguments: Sequence[str]) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - the user's own agent
                [program, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
            return ""
        # Some say it on standard error.
        return done.stdout or done.stderr if done.returncode == 0 else ""

    return Host(os.environ, Path.home(), Path.cwd(), read, run)


def _not_found(agent: Agent, name: str) -> typer.Exit:
    fix = (
        f"Install it: {agent.install}"
        if agent.install
        else f"Name {', '.join(AGENTS)}, or any command that is on the path."
    )
    return failed("not-found", f"There is no command {name!r}.", fix, _NOT_FOUND)


def _launch_text(name: str, started: Launch, kept: str) -> str:
    lines = [
        *(f"export {key}={shlex.quote(value)}" for key, value in started.environment.items()),
        shlex.join([name, *started.arguments]),
        "",
        *(
            f"# Its requests go on to {upstream.base_url}, with the agent's own login."
            for upstream in started.upstreams
        ),
        "# Nothing is kept." if kept == MEMORY else f"# The conversation is kept in {kept}.",
        *(f"# {note}" for note in started.notes),
    ]
    return "\n".join(lines)


def _launch_json(name: str, started: Launch, kept: str) -> str:
    value = {
        "command": [name, *started.arguments],
        "environment": dict(started.environment),
        "upstreams": [upstream.base_url for upstream in started.upstreams],
        "store": None if kept == MEMORY else kept,
        "notes": started.notes,
    }
    return json.dumps(value, indent=2)


def _announce(address: str, settings: Settings) -> None:
    """Say what is kept, where and for how long, the first time for each store."""
    path = state_folder() / "wrap.json"
    try:
        seen: list[object] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        seen = []
    subject = [address, settings.profile.retention.days]
    if subject in seen:
        return
    _say(first_notice(address, settings))
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, json.dumps([*seen, subject][-_MAX_STORES:]).encode())
    except OSError:
        pass  # it is said again the next time


def first_notice(address: str, settings: Settings) -> Iterator[str]:
    """What a user should know before the first conversation is kept."""
    days = settings.profile.retention.days
    yield f"The whole conversation, keys in it included, is kept in {without_password(address)}"
    until = f"nobody has used it for {days} days" if days else "you erase it"
    other = "0" if days else "30"
    yield f"until {until}. To change that: refold config retention.days {other}"
    yield "Keep nothing: refold wrap --no-keep. Erase one: refold forget. Look: refold sessions"
