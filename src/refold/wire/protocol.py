"""What a wire can do: describe a message format, edit it, and judge what its provider allows."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

from refold.wire.part import Change, Described, Insert


class Problem(NamedTuple):
    """Why a provider would refuse these messages."""

    at: int
    """The position of the message among those sent."""
    what: str


class Wire(Protocol):
    """One message format. Payloads are the raw JSON of one message each."""

    name: ClassVar[str]
    """The format's name, as a session's first entry has it."""
    version: ClassVar[int]
    """Raised when the same edits give other bytes: request records name it."""
    unique_calls: ClassVar[bool]
    """Whether the provider refuses two calls with one id anywhere in a conversation."""
    itemized: ClassVar[bool]
    """Whether a response is several messages: the model's in a row are one, and a thought goes with
    what comes after it, both or none."""
    systems_last: ClassVar[bool]
    """Whether what systems say in a conversation must be one message, right before a response."""

    def describe(self, payload: bytes) -> Described:
        """The message as parts. What it does not know is a sealed part of kind "other".

        Raises InvalidMessage when the payload is no message of this format.
        """
        ...

    def edit(self, payload: bytes, changes: Mapping[int, Change]) -> bytes | None:
        """The message with the parts at these indexes changed, all else byte for byte as it was.

        None when nothing of it is left.
        """
        ...

    def make(self, inserts: Sequence[Insert]) -> list[bytes]:
        """The inserts, which stand side by side and are of one kind, as messages of their own.

        An itemized format has none for a return that it cannot say in words; its call goes then.
        """
        ...

    def join(self, returns: Sequence[Insert], payload: bytes) -> bytes | None:
        """The message with the returns put in front of its content.

        None where the format wants them in messages of their own.
        """
        ...

    def problems(self, messages: Sequence[bytes]) -> list[Problem]:
        """What the provider would refuse. It reads the messages anew and trusts no plan."""
        ...
