"""What requests to the API may hold, each with its bounds."""

from typing import Annotated, Final
from uuid import UUID

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from refold.log.names import LONGEST_NAME
from refold.log.span import Span
from refold.service.kept import Role

LARGEST: Final = 2**53 - 1
"""The largest number that every reader of JSON keeps as it is."""
MOST_ENTRIES: Final = 500
MOST_FOUND: Final = 100
_PLAIN: Final = r"^[^\u0000-\u001f\u007f]*$"
"""No control characters, in which stores and terminals differ."""

Words = Annotated[str, Field(min_length=1, max_length=200, pattern=_PLAIN)]
Seq = Annotated[int, Path(ge=1, le=LARGEST, description="The entry's place in the log.")]
FoldId = Annotated[UUID, Path(description="The fold's id.")]
After = Annotated[int, Query(ge=0, le=LARGEST, description="Begin behind this entry.")]
Limit = Annotated[int, Query(ge=1, le=MOST_ENTRIES)]
FewAtMost = Annotated[int, Query(ge=1, le=MOST_FOUND)]
Looked = Annotated[
    str, Query(min_length=1, max_length=1_000, pattern=_PLAIN, description="Words to look for.")
]


class Given(BaseModel):
    """What all bodies have in common: what they do not know, they refuse."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NewSession(Given):
    """A session to open."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME, examples=["support-42"])
    format: str = Field(max_length=40, examples=["openai-chat"])
    profile: str = Field(default="balanced", max_length=40)
    title: Words | None = None


class NewTitle(Given):
    """Another title."""

    title: Words


class NewOwner(Given):
    """The key that a session is handed over to."""

    key: str = Field(pattern=r"^[a-z0-9]{1,64}$", description="The key's id.")


class NewFork(Given):
    """A session to be made of another's entries."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME)
    at: int | None = Field(
        default=None, ge=1, le=LARGEST, description="Of so many entries; else of all."
    )


class To(Given):
    """Where to go back to."""

    to: int = Field(ge=1, le=LARGEST, description="The entry that is to be the newest again.")


class Run(Given):
    """A run of entries, first and last included."""

    first: int = Field(ge=1, le=LARGEST)
    last: int = Field(ge=1, le=LARGEST)

    @property
    def span(self) -> Span:
        """The same as a span."""
        return Span(self.first, self.last)


class NewMessages(Given):
    """Messages to append, in the session's format."""

    messages: list[dict[str, JsonValue]] = Field(min_length=1, max_length=100)


class NewFold(Given):
    """A fold to make."""

    focus: str | None = Field(
        default=None, max_length=2_000, description="What the summary must keep."
    )
    wait: bool = Field(default=True, description="False: answer as soon as it has begun.")


class NewKey(Given):
    """A key to make."""

    roles: list[Role] = Field(min_length=1, max_length=4)
    name: str = Field(default="", max_length=LONGEST_NAME)
    days: int | None = Field(
        default=None, ge=1, le=3_660, description="Until it expires; null: never."
    )


class Rotation(Given):
    """How a key gets a new secret."""

    overlap: float = Field(
        default=86_400.0,
        ge=0,
        le=366 * 86_400,
        allow_inf_nan=False,
        description="Seconds that the old secret stays valid.",
    )


class UpstreamKey(Given):
    """A provider's key to keep."""

    key: str = Field(min_length=1, max_length=4_096, pattern=r"^[\x21-\x7e]+$", repr=False)
