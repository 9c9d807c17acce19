"""The agent a chat runs: one of yours, or a plain one."""

import importlib
import importlib.util
import sys
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import Model

from refold.errors import InvalidInput
from refold.integrations.pydantic_ai import Refold

_HOW = "Write --agent module:name, or --agent path/to/file.py:name."
_PLAIN = (
    "You are talking with a person in a terminal. Answer shortly and in plain words, in their "
    "language. Say so when you do not know something. Older parts of the conversation may be shown "
    "to you as summaries; everything that was said is kept."
)


def agent_at(where: str) -> Agent[Any, Any]:
    """The agent that `module:name` or `path/to/file.py:name` names.

    A module that is not installed is looked for in the current folder. Without a name, the only
    agent there is taken.
    """
    place, colon, path = where.rpartition(":")
    if not colon or where.endswith(".py"):
        place, path = where, ""
    if not place:
        raise InvalidInput(f"{where!r} names no agent.", _HOW)
    module = _from_file(Path(place)) if _is_file(place) else _from_module(place)
    return _attribute(module, place, path) if path else _only(module, place)


def plain_agent(model: Model, *, instructions: str | None = None) -> Agent[None, str]:
    """An agent without tools, for those who bring none.

    Args:
        model: What it talks with.
        instructions: What it is told instead of ours.
    """
    return Agent(model, name="chat", instructions=_PLAIN if instructions is None else instructions)


def has_refold(agent: Agent[Any, Any]) -> Refold | None:
    """The memory that the agent carries already."""
    found: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(found.append)
    return next((one for one in found if isinstance(one, Refold)), None)


def _is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place


def _from_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise InvalidInput(f"{name!r} is no module's name.", _HOW)
    importlib.invalidate_caches()
    try:
        # Only a name that nothing installed has leads to the folder: a folder that brings a module
        # of the same name as an installed one is not asked for it, nor for anything it imports.
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            _importable(Path.cwd())
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise InvalidInput(
                f"There is no module {error.name}.",
                f"Run this in the folder that holds it, or name the file. {_HOW}",
            ) from error
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _from_file(path: Path) -> ModuleType:
    full = path.expanduser().resolve()
    if not full.is_file():
        raise InvalidInput(f"There is no file {str(path)!r}.", _HOW)
    spec = importlib.util.spec_from_file_location(full.stem, full)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{str(path)!r} is no Python file.", _HOW)
    _importable(full.parent)
    module = importlib.util.module_from_spec(spec)
    known = sys.modules.get(full.stem)
    if known is None:
        sys.modules[full.stem] = module  # what it defines is looked up there by its name
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if known is None:
            del sys.modules[full.stem]
        raise _broken(str(path), error) from error
    return module


def _importable(folder: Path) -> None:
    """Find modules in this folder, after all that are installed."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _broken(place: str, error: BaseException) -> InvalidInput:
    """It failed when it was loaded: say with what, and where in it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" (line {trace.tb_lineno} of {trace.tb_frame.f_code.co_filename})" if trace else ""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    missing = isinstance(error, ModuleNotFoundError)
    return InvalidInput(
        f"{place} could not be loaded: {said}{where}.",
        "Install what it needs in this environment." if missing else "Correct it and try again.",
    )


def _attribute(module: ModuleType, place: str, path: str) -> Agent[Any, Any]:
    value: object = module
    for name in path.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            raise InvalidInput(
                f"{place} has no {path}.", _there(module, place, like=path)
            ) from None
    if isinstance(value, Agent):
        return cast("Agent[Any, Any]", value)
    raise InvalidInput(
        f"{place}:{path} is a {type(value).__name__}, not a Pydantic AI agent.",
        _there(module, place),
    )


def _only(module: ModuleType, place: str) -> Agent[Any, Any]:
    found = _agents_in(module)
    if len(found) == 1:
        return next(iter(found.values()))
    raise InvalidInput(
        f"{place} has {len(found)} agents: name one." if found else f"{place} has no agent.",
        _there(module, place),
    )


def _agents_in(module: ModuleType) -> dict[str, Agent[Any, Any]]:
    return {name: one for name, one in vars(module).items() if isinstance(one, Agent)}


def _there(module: ModuleType, place: str, like: str = "") -> str:
    found = list(_agents_in(module))
    if not found:
        return "Make one there: agent = Agent(…)."
    near = get_close_matches(like, found, n=1)
    return "There is: " + ", ".join(f"{place}:{name}" for name in dict.fromkeys([*near, *found]))
