"""What a scripted upstream gets, and what it is told to answer."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Got:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Json:
        """Its body; empty if it is no JSON."""
        try:
            return json.loads(self.raw or b"{}")
        except ValueError:
            return {}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    id: str
    tool: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: tuple[int, int] | None = (10, 5)
    thought: str = ""
    breaks_after: int | None = None
    """After how many events the connection breaks."""
    pieces: int = 4
    """In how many pieces the text comes."""
    pause: Callable[[], Awaitable[object]] | None = None
    """Is waited for when half of the events were sent."""
    number: int | None = None
    """Which answer it is, where its ids are to be those of a recording; else they are counted."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal, as it is to be sent."""

    status: int
    body: Json
    headers: dict[str, str] = field(default_factory=dict[str, str])
