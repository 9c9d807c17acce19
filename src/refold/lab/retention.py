"""LR-UIR: of the old identifiers that the assistant used again, how many it was still shown.

At each assistant message we take the identifiers it wrote, in words and in the arguments of calls,
that had been seen before, but last more than `gap` tokens ago. One counts as kept when a message of
the view that was sent then holds it as an identifier.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from refold.lab.metrics import Share
from refold.lab.reading import Reader
from refold.lab.recording import Recording
from refold.lab.replay import Replay


@dataclass(frozen=True, slots=True)
class Reuse:
    """An assistant message of the recording, and an old identifier in it."""

    at: int
    identifier: str


class Retention:
    """Measures replays of any number of recordings."""

    def __init__(self, reader: Reader, gap: int) -> None:
        self._reader = reader
        self._gap = gap

    def measure(self, replay: Replay) -> Share:
        """The share of old identifiers that were still in the view."""
        views = {request.at: request.view for request in replay.requests}
        uses = list(self.reuses(replay.recording))
        return Share(sum(self._holds(views[use.at], use.identifier) for use in uses), len(uses))

    def reuses(self, recording: Recording) -> Iterator[Reuse]:
        """Where the assistant used an old identifier."""
        last: dict[str, int] = {}
        position = 0
        for at, payload in enumerate(recording.payloads):
            said = self._reader.read(payload)
            here = self._reader.identifiers(payload)
            if said.speaker == "assistant":
                for one in sorted(here):
                    if one in last and position - last[one] > self._gap:
                        yield Reuse(at, one)
            position += said.tokens
            last.update(dict.fromkeys(here, position))

    def _holds(self, view: tuple[bytes, ...], identifier: str) -> bool:
        return any(identifier in self._reader.identifiers(payload) for payload in view)
