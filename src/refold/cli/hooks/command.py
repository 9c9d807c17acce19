"""`refold hooks`: install, look at and remove what agents call after they compact."""

import difflib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from refold.cli.chat.clean import cleaned
from refold.cli.hooks.agents import AGENTS, HookedAgent, agent_for, codex_reviewed
from refold.cli.hooks.recall import recall_servers
from refold.cli.hooks.run import log_path
from refold.cli.outcome import exit_on_error, require_extra, wrong_usage
from refold.cli.output import aligned
from refold.errors import InvalidInput
from refold.user_files import state_folder, write_whole

hooks = typer.Typer(
    name="hooks",
    help="Quote earlier messages after an agent compacts, where the gateway cannot be used.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
AgentArgument = Annotated[
    str, typer.Argument(metavar="AGENT", help=", ".join(AGENTS), show_default=False)
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Change the file without asking.")]


@hooks.command()
def install(
    agent: AgentArgument,
    *,
    recall: Annotated[
        bool | None,
        typer.Option(
            "--recall/--no-recall",
            help="Also let the agent's model search the log, by an MCP server.",
            show_default="asked in a terminal, else no",
        ),
    ] = None,
    yes: YesOption = False,
) -> None:
    """Make an agent call Refold after each turn and after each compaction.

    The agent's sessions are then in the log. After the agent compacts, its model gets the user's
    own words and the facts back, quoted from the log. With your consent, the model can also search
    the log. Each change is shown first, and the file is backed up.

    Example: refold hooks install claude
    """
    with exit_on_error():
        known = _agent(agent)
        if recall:
            with require_extra("mcp"):
                import_module("mcp")
        file = _File.of(known)
        if _install(known, file, yes=yes):
            typer.echo(f"Installed. {known.note}")
        else:
            typer.echo(f"{_short(file.path)} has them already. {known.note}")
        _offer_recall(known, recall=recall, yes=yes)
        if shutil.which(known.name) is None:
            typer.echo(f"There is no command {known.name!r} here yet.", err=True)


@hooks.command()
def uninstall(agent: AgentArgument, *, yes: YesOption = False) -> None:
    """Remove Refold's hooks and MCP server from an agent's settings, and nothing else.

    Sessions in the log stay.

    Example: refold hooks uninstall claude
    """
    with exit_on_error():
        known = _agent(agent)
        found = False
        for each in (recall_servers()[known.name], known):  # the last change is undone first
            file = _File.of(each)
            if file.text is not None and each.count(file.text):
                found = True
                _uninstall(each, file, yes=yes)
        typer.echo("Removed." if found else f"{_short(known.path())} has no hooks of Refold.")


@hooks.command()
def status(
    *, as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False
) -> None:
    """Show which agents have Refold's hooks, and the last errors of hooks.

    Example: refold hooks status
    """
    with exit_on_error():
        states = [state_of(agent) for agent in AGENTS.values()]
        if as_json:
            typer.echo(json.dumps([asdict(state) for state in states], indent=2))
            return
        rows = [(each.agent, each.state, _short(Path(each.path))) for each in states]
        typer.echo("\n".join(aligned(rows)))
        for line in last_errors():
            typer.echo(line, err=True)


@hooks.command()
def preview(
    agent: AgentArgument,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="A session's file, as the agent wrote it.",
            show_default="the newest session of this folder",
        ),
    ] = None,
) -> None:
    """Print what the agent's model would be shown if a session were compacted now.

    Nothing is sent, kept or changed, and no hooks need be installed.

    Example: refold hooks preview claude
    """
    from refold.cli.hooks import reminder  # noqa: PLC0415 - slow

    with exit_on_error():
        known = _agent(agent)
        if file is not None and not file.exists():
            raise FileNotFoundError(2, "No such file", str(file))
        text = reminder.preview(known.name, file)
        typer.echo(cleaned(text) or "Nothing: this session has nothing to quote yet.")


@dataclass(frozen=True, slots=True)
class HookState:
    """What is installed for an agent."""

    agent: str
    path: str
    installed: bool
    current: bool
    """Whether it is what this version would install."""
    reviewed: bool
    """Whether the user has let the agent run them, where it asks for that."""
    recall: bool = False
    """Whether the agent's model can search the log."""
    problem: str = ""

    @property
    def state(self) -> str:
        if self.problem:
            return f"cannot be read: {self.problem}"
        if not self.installed:
            return "not installed"
        if not self.current:
            return f"of another version: refold hooks install {self.agent}"
        recall = ", with recall" if self.recall else ""
        review = "" if self.reviewed else ", not reviewed: enter /hooks in codex"
        return f"installed{recall}{review}"


def state_of(agent: HookedAgent) -> HookState:
    """What is installed for an agent; a file that cannot be read is a problem of it."""
    path = agent.path()
    try:
        text = _File.of(agent).text or ""
        count = agent.count(text)
        current = bool(count) and agent.install(text) == text
        server = recall_servers()[agent.name]
        recall = _File.of(server).text or ""
        searches = server.count(recall) > 0
        current = current and (not searches or server.install(recall) == recall)
    except (InvalidInput, OSError, UnicodeDecodeError) as error:
        what = error.what if isinstance(error, InvalidInput) else str(error)
        return HookState(
            agent.name, str(path), installed=False, current=False, reviewed=False, problem=what
        )
    reviewed = agent.name != "codex" or codex_reviewed() >= count
    return HookState(agent.name, str(path), count > 0, current, reviewed, searches)


def last_errors() -> Iterator[str]:
    """The last errors of hooks, the newest last."""
    with suppress(OSError):
        lines = log_path().read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line for line in lines if line[:2] == "20"]
        if errors:
            yield f"The last error of {len(errors)} in {_short(log_path())}:"
            yield errors[-1]


@dataclass(frozen=True, slots=True)
class _File:
    """A file of an agent's settings, and what Refold remembers of its own change."""

    agent: str
    path: Path
    text: str | None
    """None if there is no file."""

    @classmethod
    def of(cls, agent: HookedAgent) -> "_File":
        path = agent.path()
        try:
            return cls(agent.name, path, path.read_bytes().decode())
        except FileNotFoundError:
            return cls(agent.name, path, None)

    @property
    def _memory(self) -> Path:
        return state_folder() / "hooks" / f"{self.agent}.json"

    def memory(self) -> "_Memory | None":
        """What Refold did with this file, as far as that is known."""
        with suppress(OSError, ValueError, TypeError):
            memory = _Memory(**json.loads(self._memory.read_bytes()))
            return memory if memory.path == str(self.path) else None
        return None

    def back_up(self) -> Path | None:
        """A copy of the file, if there is one."""
        if self.text is None:
            return None
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        copy = state_folder() / "hooks" / "backups" / f"{self.agent}-{stamp}{self.path.suffix}"
        copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(copy, self.text.encode())
        return copy

    def remember(self, memory: "_Memory") -> None:
        """Note what was done, so that it can be taken back to the letter."""
        self._memory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(self._memory, json.dumps(asdict(memory)).encode())

    def forget(self) -> None:
        self._memory.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Memory:
    """What Refold's last change of a file was."""

    path: str
    sha256: str
    """Of the file with Refold's hooks."""
    backup: str | None
    """The file without them; None if there is no copy of that."""
    created: bool
    """Whether there was no file before Refold's."""


def _agent(name: str) -> HookedAgent:
    with wrong_usage():
        return agent_for(name)


def _offer_recall(agent: HookedAgent, *, recall: bool | None, yes: bool) -> None:
    """Add the MCP server where the user wants it; where nobody can be asked, say how."""
    server = recall_servers()[agent.name]
    file = _File.of(server)
    if recall is None and file.text is not None and server.count(file.text):
        recall = True  # it is there, perhaps of another version
    if recall is None and find_spec("mcp") is None:
        return
    if recall is None and (yes or not _has_terminal()):
        typer.echo(f"Its model can search the log, too: refold hooks install {agent.name} --recall")
        return
    if recall is False or _edited(file, server.install) == (file.text or ""):
        return
    if _install(server, file, yes=yes, optional=recall is None):
        typer.echo("Installed. Its tools are there when the agent starts the next time.")


def _install(agent: HookedAgent, file: _File, *, yes: bool, optional: bool = False) -> bool:
    """Add what an agent is to have, if the user agrees; whether anything was changed.

    Where it is not optional, the command ends if the user does not want it.
    """
    before, memory = file.text or "", file.memory()
    after = _edited(file, agent.install)
    if after == before:
        return False
    typer.echo(f"{_what(agent, file)} {agent.purpose}")
    if not _agrees(file.path, agent.shown(before), agent.shown(after), yes=yes):
        if optional:
            return False
        raise typer.Exit(1)
    if (now := _File.of(agent)) != file:  # the agent wrote to it meanwhile
        file, before = now, now.text or ""
        after = _edited(file, agent.install)
    backup = file.back_up()
    if backup:
        typer.echo(f"Backup: {_short(backup)}")
    file.path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file.path, after.encode())
    clean = str(backup) if backup and not agent.count(before) else None
    if memory and memory.sha256 == _digest(before):  # of an older version
        clean = memory.backup
    created = file.text is None or bool(memory and memory.created)
    file.remember(_Memory(str(file.path), _digest(after), clean, created))
    return True


def _what(agent: HookedAgent, file: _File) -> str:
    """What is about to be changed in which file."""
    name = _short(file.path)
    if file.text is None:
        return f"This writes a new file, {name}, with {agent.interface}."
    if agent.count(file.text):
        return (
            f"This replaces what another version of Refold wrote in {name}; all else in it stays."
        )
    return f"This adds {agent.interface} to {name}; all else in it stays."


def _uninstall(agent: HookedAgent, file: _File, *, yes: bool) -> None:
    before, memory = file.text or "", file.memory()
    after = _edited(file, agent.uninstall)
    if memory and memory.sha256 == _digest(before) and memory.backup:
        with suppress(OSError, UnicodeDecodeError):
            after = Path(memory.backup).read_bytes().decode()
    created = agent.name == "opencode" or bool(memory and memory.created)
    emptied = created and after.strip() in ("", "{}")
    if emptied:
        typer.echo(f"Nothing but Refold's part is in {_short(file.path)}: the file is removed.")
    else:
        typer.echo(f"This removes what Refold added to {_short(file.path)}; all else in it stays.")
    shown = agent.shown(after) if not emptied else ""
    if not _agrees(file.path, agent.shown(before), shown, yes=yes):
        raise typer.Exit(1)
    if (now := _File.of(agent)) != file:  # as above
        file, after = now, _edited(now, agent.uninstall)
        emptied = created and after.strip() in ("", "{}")
    if backup := file.back_up():
        typer.echo(f"Backup: {_short(backup)}")
    if emptied:
        file.path.unlink()
    else:
        write_whole(file.path, after.encode())
    file.forget()


def _edited(file: _File, edit: Callable[[str], str]) -> str:
    try:
        return edit(file.text or "")
    except InvalidInput as error:
        raise InvalidInput(f"{_short(file.path)}: {error.what}", error.fix) from error


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _agrees(path: Path, before: str, after: str, *, yes: bool) -> bool:
    """Show the change; whether the user wants it."""
    name = _short(path)
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), name, name, lineterm="", n=2
    )
    typer.echo("\n".join(lines))
    if yes:
        return True
    with wrong_usage():
        if not _has_terminal():
            raise InvalidInput(
                "Can't ask for confirmation: not a terminal.", "Read the change, then add --yes."
            )
    try:
        agreed = typer.confirm("Change the file so?", default=False)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    if not agreed:
        typer.echo("Nothing was changed.")
    return agreed


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _short(path: Path) -> str:
    return str(path).replace(f"{Path.home()}/", "~/", 1)
