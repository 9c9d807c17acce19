"""What is new in a run's own history.

Others may shorten that list, or replace it by copies, before each request. So what came since the
last request is looked at before they do, and found again after.
"""

from pydantic_ai.messages import ModelMessage

from refold.integrations.pydantic_ai.continuing import all_likenesses
from refold.integrations.pydantic_ai.message_bytes import payload_of


class History:
    """The history of one run, and how far it was taken note of."""

    def __init__(self, messages: list[ModelMessage], run_id: str | None) -> None:
        self._messages = messages
        self._run_id = run_id
        self._noted: int | None = None
        """How long the list was when all of it had been taken note of."""
        self._since: list[ModelMessage] | None = None
        """What came since, before others saw it."""
        self._earlier = len(self._own())
        """Messages of an earlier run with the same id."""

    def is_now(self, messages: list[ModelMessage]) -> None:
        """The list is another one once the run's prompt was read."""
        self._messages = messages

    def step(self) -> None:
        """A request is about to be prepared."""
        self._since = self._new()

    def take(self) -> list[ModelMessage]:
        """What is new; it is not new again."""
        new = self._found() if self._since else self._new()
        self._noted, self._since = len(self._messages), None
        return new

    def _new(self) -> list[ModelMessage]:
        if self._noted is None:
            return self._own()[self._earlier :]
        return self._messages[self._noted :]

    def _own(self) -> list[ModelMessage]:
        """The newest messages, as far as they are the run's."""
        first = len(self._messages)
        for at in range(len(self._messages) - 1, -1, -1):
            run_id = self._messages[at].run_id
            if run_id == self._run_id:
                first = at
            elif run_id is not None:
                break
        return self._messages[first:]

    def _found(self) -> list[ModelMessage]:
        """What was new before others saw it, with what they made of its end and put behind it."""
        since = self._since or []
        at = self._place(since[-1])
        return since if at is None else [*since[:-1], *self._messages[at:]]

    def _place(self, step: ModelMessage) -> int | None:
        """Where the message is now: itself, or a copy that has something of it."""
        newest_first = range(len(self._messages) - 1, -1, -1)
        for at in newest_first:
            if self._messages[at] is step:
                return at
        parts = all_likenesses([payload_of(step)])
        for at in newest_first:
            if parts & all_likenesses([payload_of(self._messages[at])]):
                return at
        return None
