"""A request as the client sent it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue


class Unreadable(Exception):
    """The body is no JSON object: it is passed on as it came."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the conversation in it, and what stands beside the conversation."""

    raw: bytes
    """The body as it came."""
    body: Mapping[str, JsonValue]
    """What it says. Of a key that occurs twice, the last counts."""
    model: str
    """Empty if none is named."""
    messages: tuple[bytes, ...]
    """The conversation: each message as compact JSON, with the values that came."""
    lead: int
    """How many system messages stood in front of the conversation: they are instructions."""
    instructions: str
    """The words of the instructions, to count them."""
    tools: tuple[str, ...]
    """Each tool's definition as JSON."""
    beside: Mapping[str, bytes]
    """What is not the conversation, as JSON: `instructions` and `tools` if there are any, and
    `settings`, which is all the rest."""
    stream: bool
    identity: tuple[str, ...]
    """Whom the client says it speaks for: every identifier, without the empty ones at the end."""
    ungoverned: str
    """Why it cannot be governed; empty if it can."""
    over_bounds: bool = False
    """Whether that is because it holds more than is managed."""
