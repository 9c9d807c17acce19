"""How many tokens a request may have, and what they are spent on."""

from typing import NamedTuple

ASSUMED_WINDOW = 128_000
"""When nobody knows a model's window."""


class Budget(NamedTuple):
    """What limits one request."""

    window: int | None = None
    """The model's window; None when it is unknown."""
    reserve: int = 0
    """Kept free for the answer."""
    instructions: int = 0
    """Tokens of instructions that are sent beside the messages."""
    tools: int = 0
    """Tokens of the tool definitions."""
    learned: int | None = None
    """A limit that the provider named when it refused a request."""
    configured: int | None = None
    """A limit of the user's own."""
    guessed: int | None = None
    """What a refusal that named no limit suggests. Requests stay below it where they can; nothing
    is refused because of it, since only a longer request could ever show it wrong."""
    refused: int = 0
    """How often in a row the provider refused it for its length: see a profile's emergency."""

    @property
    def limit(self) -> int:
        """The effective limit: everything that is sent must stay within it."""
        window = ASSUMED_WINDOW if self.window is None else self.window
        bounds = (window - self.reserve, self.learned, self.configured, self.guessed)
        return max(0, min(bound for bound in bounds if bound is not None))

    @property
    def floor(self) -> int:
        """What is sent whatever the view is."""
        return self.instructions + self.tools

    @property
    def shown_window(self) -> str:
        """The window, for people."""
        if self.window is None:
            return f"unknown (assuming {ASSUMED_WINDOW:,})"
        return f"{self.window:,}"


class Account(NamedTuple):
    """Where the tokens of a request go, as counted."""

    system: int = 0
    conversation: int = 0
    tools: int = 0
    reserve: int = 0
    limit: int = 0
    headroom: int = 0
    """Left unused because a count may be too low by this much."""

    @property
    def sent(self) -> int:
        """Everything that is sent."""
        return self.system + self.conversation + self.tools

    @property
    def free(self) -> int:
        """What is left below the limit."""
        return max(0, self.limit - self.headroom - self.sent)


PER_MESSAGE = 4
"""Tokens that each message costs beside its parts: role and separators."""
