"""What a replay cost, how well it used the cache, and whether its views were legal."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import ceil, sqrt

from pydantic import JsonValue, TypeAdapter

from refold.errors import InvalidInput
from refold.lab import messages as make
from refold.lab.messages import Call, Reader, Speaker
from refold.lab.recording import Recording
from refold.lab.replay import Replay

_MILLION = 1_000_000
_Z = 1.959964  # 95 %


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for a million tokens."""

    input: float = 3.0
    output: float = 15.0
    cache_read: float = 0.30
    cache_write: float = 3.75


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many."""

    found: int
    of: int

    @property
    def rate(self) -> float:
        """The share; 1 of nothing, for nothing was lost."""
        return self.found / self.of if self.of else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true share lies, with 95 % confidence (Wilson)."""
        if not self.of:
            return 0.0, 1.0
        n, rate, square = self.of, self.rate, _Z * _Z
        middle = (rate + square / (2 * n)) / (1 + square / n)
        half = _Z * sqrt(rate * (1 - rate) / n + square / (4 * n * n)) / (1 + square / n)
        low = 0.0 if not self.found else middle - half
        return low, 1.0 if self.found == n else middle + half


def pooled(shares: Iterable[Share]) -> Share:
    """The shares of several recordings as one."""
    every = list(shares)
    return Share(sum(one.found for one in every), sum(one.of for one in every))


def sent(replay: Replay) -> int:
    """IN: the tokens of all requests."""
    return sum(request.sent for request in replay.requests)


def cached(replay: Replay) -> int:
    """The tokens of all requests that the one before them began with too."""
    return sum(request.cached for request in replay.requests)


def peak(replay: Replay) -> int:
    """PEAK: the tokens of the largest request."""
    return max((request.sent for request in replay.requests), default=0)


def fit(replay: Replay, limit: int) -> int:
    """FIT@L: the requests before one exceeds the limit."""
    sizes = [request.sent for request in replay.requests]
    return next((at for at, size in enumerate(sizes) if size > limit), len(sizes))


def cache_hits(replay: Replay) -> float:
    """CHR: the tokens a request shares with the one before it, of all that were sent."""
    total = sent(replay)
    return cached(replay) / total if total else 0.0


def cost(replay: Replay, prices: Prices, *, cached: bool = True) -> float:
    """Dollars, the policy's own model calls included; `cached=False` is without a prompt cache."""
    total = 0.0
    for request in replay.requests:
        spent = request.spent
        read, new = request.cached + spent.cached, request.new + spent.new
        if cached:
            total += read * prices.cache_read + new * prices.cache_write
        else:
            total += (read + new) * prices.input
        total += (request.output + spent.output) * prices.output
    return total / _MILLION


def orphaned(replay: Replay) -> int:
    """ORPH: the requests that hold half of a pair whose other half the policy took away."""
    return sum(request.orphans > 0 for request in replay.requests)


def unanswered(replay: Replay) -> int:
    """The requests that hold a call which the recording never answered."""
    return sum(request.unanswered > 0 for request in replay.requests)


def overhead(replay: Replay) -> tuple[float, float]:
    """OVH: the milliseconds that the policy added to a request, p50 and p95."""
    times = sorted(request.milliseconds for request in replay.requests)
    return _percentile(times, 50), _percentile(times, 95)


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[ceil(len(ordered) * percent / 100) - 1] if ordered else 0.0


# PNR: sentences planted in a recording, and how many of them the last request still holds.

SPEAKERS: tuple[Speaker, ...] = ("user", "assistant", "tool")

_MESSAGE = TypeAdapter(dict[str, JsonValue])
_PLANTED_IN = {"user": "user-prompt", "assistant": "text", "tool": "tool-return"}


@dataclass(frozen=True, slots=True)
class Planted:
    """A recording with needles in it, and which."""

    recording: Recording
    needles: dict[Speaker, tuple[str, ...]]


def plant(recording: Recording, reader: Reader, *, each: int = 20) -> Planted:
    """Plant needles in what each speaker said, evenly over the recording."""
    messages = list(recording.messages)
    needles: dict[Speaker, tuple[str, ...]] = {}
    for speaker in SPEAKERS:
        places = [at for at, one in enumerate(messages) if _takes(one.payload, speaker, reader)]
        if len(places) < each:
            raise InvalidInput(
                f"{recording.name} has {len(places)} places for a needle of the {speaker}.",
                f"Plant at most {len(places)} needles each.",
            )
        chosen = [places[(2 * nth + 1) * len(places) // (2 * each)] for nth in range(each)]
        needles[speaker] = tuple(f"needle-{_code(recording.name, speaker, at)}" for at in chosen)
        for at, needle in zip(chosen, needles[speaker], strict=True):
            payload = _with(messages[at].payload, speaker, needle)
            messages[at] = replace(messages[at], payload=payload)
    return Planted(replace(recording, messages=tuple(messages)), needles)


def needles_kept(planted: Planted, replay: Replay, reader: Reader) -> dict[Speaker, Share]:
    """How many needles of each speaker the last request holds, letter by letter."""
    view = replay.requests[-1].view if replay.requests else ()
    text = "\n".join(reader.read(payload).text for payload in view)
    return {
        speaker: Share(sum(needle in text for needle in needles), len(needles))
        for speaker, needles in planted.needles.items()
    }


def _takes(payload: bytes, speaker: Speaker, reader: Reader) -> bool:
    said = reader.read(payload)
    return said.speaker == speaker and _with(payload, speaker, "needle") != payload


def _with(payload: bytes, speaker: Speaker, needle: str) -> bytes:
    """The message with the needle at the end of the first text it can be planted in."""
    message = _MESSAGE.validate_json(payload)
    parts = message.get("parts")
    for part in parts if isinstance(parts, list) else ():
        match part:
            case {"part_kind": kind, "content": str(text)} if kind == _PLANTED_IN[speaker]:
                part["content"] = f"{text}\n{needle}"
                return make.dump(message)
            case _:
                pass
    return payload


def _code(*of: object) -> str:
    return sha256(repr(of).encode()).hexdigest()[:16]


# REREAD: files that the assistant read again, and whether it was still shown what it had read.

_TOOLS = frozenset({"read", "read_file", "view", "view_file", "cat", "open_file"})
_PATHS = ("path", "file_path", "filename", "file")


@dataclass(frozen=True, slots=True)
class Reread:
    """A request in which a file is read that was read before, and what was returned then."""

    at: int
    path: str
    earlier: tuple[tuple[str, str], ...]


def rereads(recording: Recording, reader: Reader) -> list[Reread]:
    """The reads of files that an earlier call had read."""
    calls: dict[str, list[str]] = {}
    answers: dict[str, str] = {}
    found: list[Reread] = []
    for at, payload in enumerate(recording.payloads):
        said = reader.read(payload)
        answers.update(said.returns)
        read = [(path, call.id) for call in said.calls if (path := _read_path(call))]
        for path in dict.fromkeys(path for path, _ in read):
            earlier = [(call, answers[call]) for call in calls.get(path, ()) if call in answers]
            if earlier:
                found.append(Reread(at, path, tuple(earlier)))
        for path, call in read:
            calls.setdefault(path, []).append(call)
    return found


def rereads_lost(replay: Replay, reader: Reader) -> Share:
    """Of the files that were read again, those of which no earlier read was in the view."""
    views = {request.at: request.view for request in replay.requests}
    every = rereads(replay.recording, reader)
    gone = 0
    for reread in every:
        shown = {pair for payload in views[reread.at] for pair in reader.read(payload).returns}
        gone += shown.isdisjoint(reread.earlier)
    return Share(gone, len(every))


def _read_path(call: Call) -> str | None:
    if call.tool.lower() not in _TOOLS or not isinstance(call.arguments, dict):
        return None
    for name in _PATHS:
        value = call.arguments.get(name)
        if isinstance(value, str):
            return value
    return None


# LR-UIR: of the old identifiers that the assistant used again, how many it was still shown.
#
# At each assistant message we take the identifiers it wrote, in words and in the arguments of
# calls,
# that had been seen before, but last more than `gap` tokens ago. One counts as kept when a message
# of
# the view that was sent then holds it as an identifier.


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
