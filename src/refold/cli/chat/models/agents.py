"""The agent that a chat runs: the user's own, or a plain one."""

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
    """Load the agent at `module:name` or `path/to/file.py:name`.

    A module that is not installed is searched in the current folder. Without a name, the module
    must have exactly one agent.
    """
    place, colon, path = where.rpartition(":")
    if not colon or where.endswith(".py"):
        place, path = where, ""
    if not place:
        raise InvalidInput(f"{where!r} names no agent.", _HOW)
    is_file = place.endswith(".py") or "/" in place
    module = _from_file(Path(place)) if is_file else _from_module(place)
    return _attribute(module, place, path) if path else _only(module, place)


def plain_agent(model: Model, *, instructions: str | None = None) -> Agent[None, str]:
    """An agent without tools.

    Args:
        model: Its model.
        instructions: Instead of the default ones.
    """
    return Agent(model, name="chat", instructions=_PLAIN if instructions is None else instructions)


def has_refold(agent: Agent[Any, Any]) -> Refold | None:
    capabilities: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(capabilities.append)
    return next((one for one in capabilities if isinstance(one, Refold)), None)


def _from_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise InvalidInput(f"{name!r} is not a module's name.", _HOW)
    importlib.invalidate_caches()
    try:
        # The folder is searched only for names that nothing installed has: it must not be able to
        # replace an installed module, or anything that one imports.
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            _append_to_path(Path.cwd())
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
        raise InvalidInput(f"{str(path)!r} is not a Python file.", _HOW)
    _append_to_path(full.parent)
    module = importlib.util.module_from_spec(spec)
    is_new = full.stem not in sys.modules
    if is_new:
        sys.modules[full.stem] = module  # its classes are looked up there by name
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if is_new:
            del sys.modules[full.stem]
        raise _broken(str(path), error) from error
    return module


def _append_to_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _broken(place: str, error: BaseException) -> InvalidInput:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" (line {trace.tb_lineno} of {trace.tb_frame.f_code.co_filename})" if trace else ""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    missing = isinstance(error, ModuleNotFoundError)
    return InvalidInput(
        f"{place} could not be loaded: {what}{where}.",
        "Install what it needs in this environment." if missing else "Correct it and try again.",
    )


def _attribute(module: ModuleType, place: str, path: str) -> Agent[Any, Any]:
    value: object = module
    for name in path.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            raise InvalidInput(f"{place} has no {path}.", _hint(module, place, like=path)) from None
    if isinstance(value, Agent):
        return cast("Agent[Any, Any]", value)
    raise InvalidInput(
        f"{place}:{path} is a {type(value).__name__}, not a Pydantic AI agent.",
        _hint(module, place),
    )


def _only(module: ModuleType, place: str) -> Agent[Any, Any]:
    agents = _agents_in(module)
    if len(agents) == 1:
        return next(iter(agents.values()))
    raise InvalidInput(
        f"{place} has {len(agents)} agents: name one." if agents else f"{place} has no agent.",
        _hint(module, place),
    )


def _agents_in(module: ModuleType) -> dict[str, Agent[Any, Any]]:
    return {name: value for name, value in vars(module).items() if isinstance(value, Agent)}


def _hint(module: ModuleType, place: str, like: str = "") -> str:
    agents = list(_agents_in(module))
    if not agents:
        return "Make one there: agent = Agent(…)."
    near = get_close_matches(like, agents, n=1)
    return "There is: " + ", ".join(f"{place}:{name}" for name in dict.fromkeys([*near, *agents]))
