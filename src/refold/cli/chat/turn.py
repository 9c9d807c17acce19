"""One turn of an agent, heard to its end, and how it ended."""

from collections.abc import AsyncIterable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal

from pydantic_ai.exceptions import UsageLimitExceeded

from refold.cli.chat.failing import told
from refold.cli.chat.heard import Heard
from refold.cli.chat.hearing import Hearing

Hear = Callable[[Heard], None]
_MORE_STEPS = "Say `go on`, or allow more: /config max_steps 50."


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended."""

    how: Literal["answered", "interrupted", "limit", "failed"]
    text: str = ""
    """The answer, or why there is none."""
    fix: str = ""
    """What to do about it."""
    code: str = ""


async def hear_out(
    run: AbstractAsyncContextManager[AsyncIterable[object]],
    hearing: Hearing,
    hear: Hear,
    steps: int,
    model: str,
) -> TurnEnd:
    """Hear a run of the agent to its end; whatever that is, the conversation goes on."""
    try:
        async with run as events:
            async for event in events:
                if (heard := hearing.heard(event)) is not None:
                    hear(heard)
    except UsageLimitExceeded:
        return TurnEnd("limit", f"The turn ended after {steps} steps.", _MORE_STEPS, "steps")
    except Exception as error:  # noqa: BLE001 - it is told to the person
        return TurnEnd("failed", *told(error, model))
    return TurnEnd("answered", hearing.text)
