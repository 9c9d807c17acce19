"""The figures of a replay: cost, cache use, broken pairs, and what the model still had in view."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import ceil, sqrt
from random import Random
from typing import Final

from refold.errors import InvalidInput
from refold.lab.messages import Call, Reader, Speaker
from refold.lab.replay import Replay
from refold.models import Prices, Usage, cost_of
from refold.transcripts import messages as make
from refold.transcripts.recording import Recording

DEFAULT_PRICES: Final = Prices(input=3.0, output=15.0, cache_read=0.30, cache_write=3.75)
"""Used where a model's prices are unknown."""
SPEAKERS: tuple[Speaker, ...] = ("user", "assistant", "tool")

_Z = 1.959964  # 95 %
_PLANTED_IN = {"user": "user-prompt", "assistant": "text", "tool": "tool-return"}
_READ_TOOLS = frozenset({"read", "read_file", "view", "view_file", "cat", "open_file"})
_PATH_ARGUMENTS = ("path", "file_path", "filename", "file")


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many."""

    found: int
    of: int

    @property
    def rate(self) -> float:
        """The share; 1 of nothing, because nothing was lost."""
        return self.found / self.of if self.of else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval (Wilson)."""
        if not self.of:
            return 0.0, 1.0
        n, rate, square = self.of, self.rate, _Z * _Z
        middle = (rate + square / (2 * n)) / (1 + square / n)
        half = _Z * sqrt(rate * (1 - rate) / n + square / (4 * n * n)) / (1 + square / n)
        low = 0.0 if not self.found else middle - half
        return low, 1.0 if self.found == n else middle + half


def pooled(shares: Iterable[Share]) -> Share:
    """The shares of several recordings as one."""
    pool = list(shares)
    return Share(sum(share.found for share in pool), sum(share.of for share in pool))


def bootstrapped(
    ratios: Sequence[tuple[float, float]], *, rounds: int = 1_000
) -> tuple[float, float]:
    """The 95 % interval of a ratio of sums, by drawing sessions with replacement.

    Sessions differ more from one another than the names in one of them do: an interval over names
    alone would be too narrow. Drawn from a fixed seed, so the same figures have the same interval.
    """
    drawn = Random(len(ratios))  # noqa: S311 - statistics
    values: list[float] = []
    for _ in range(rounds if ratios else 0):
        chosen = drawn.choices(ratios, k=len(ratios))
        whole = sum(of for _, of in chosen)
        values.append(sum(part for part, _ in chosen) / whole if whole else 1.0)
    values.sort()
    return (values[len(values) // 40], values[-1 - len(values) // 40]) if values else (0.0, 1.0)


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
    return next((index for index, size in enumerate(sizes) if size > limit), len(sizes))


def cache_hits(replay: Replay) -> float:
    """CHR: the tokens a request shares with the one before it, of all that were sent."""
    total = sent(replay)
    return cached(replay) / total if total else 0.0


def cost(replay: Replay, prices: Prices, *, cached: bool = True) -> float:
    """Dollars, the policy's own model calls included; `cached=False` is without a prompt cache."""
    usages = [request.usage for request in replay.requests]
    total = Usage(*(sum(usage[field] for usage in usages) for field in range(4)))
    dollars = cost_of(total if cached else Usage(total.input, total.output), prices)
    if dollars is None:
        raise InvalidInput("The price of input or of output is missing.", "Give both prices.")
    return dollars


def orphaned(replay: Replay) -> int:
    """ORPH: the requests that hold half of a pair whose other half the policy took away."""
    return sum(request.orphans > 0 for request in replay.requests)


def unanswered(replay: Replay) -> int:
    """The requests that hold a call which the recording never answered."""
    return sum(request.unanswered > 0 for request in replay.requests)


def overhead(replay: Replay) -> tuple[float, float]:
    """OVH: the milliseconds that the policy added to a request, p50 and p95."""
    times = sorted(request.milliseconds for request in replay.requests) or [0.0]
    p50, p95 = (times[ceil(len(times) * percent / 100) - 1] for percent in (50, 95))
    return p50, p95


# PNR: sentences planted in a recording, and how many of them the last request still holds.


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
        places = [
            index
            for index, message in enumerate(messages)
            if reader.read(message.payload).speaker == speaker
            and _with_needle(message.payload, speaker, "needle") != message.payload
        ]
        if len(places) < each:
            raise InvalidInput(
                f"{recording.name} has {len(places)} places for a needle of the {speaker}.",
                f"Plant at most {len(places)} needles each.",
            )
        chosen = [places[(2 * nth + 1) * len(places) // (2 * each)] for nth in range(each)]
        needles[speaker] = tuple(_needle(recording.name, speaker, index) for index in chosen)
        for index, needle in zip(chosen, needles[speaker], strict=True):
            payload = _with_needle(messages[index].payload, speaker, needle)
            messages[index] = replace(messages[index], payload=payload)
    return Planted(replace(recording, messages=tuple(messages)), needles)


def needles_kept(planted: Planted, replay: Replay, reader: Reader) -> dict[Speaker, Share]:
    """How many needles of each speaker the last request holds, letter by letter."""
    view = replay.requests[-1].view if replay.requests else ()
    text = "\n".join(reader.read(payload).text for payload in view)
    return {
        speaker: Share(sum(needle in text for needle in needles), len(needles))
        for speaker, needles in planted.needles.items()
    }


def _with_needle(payload: bytes, speaker: Speaker, needle: str) -> bytes:
    """The message with the needle at the end of the first text it can be planted in."""
    message = make.parse(payload)
    for part in make.parts_of(message):
        match part:
            case {"part_kind": kind, "content": str(text)} if kind == _PLANTED_IN[speaker]:
                part["content"] = f"{text}\n{needle}"
                return make.dump(message)
            case _:
                pass
    return payload


def _needle(*seed: object) -> str:
    return f"needle-{sha256(repr(seed).encode()).hexdigest()[:16]}"


# REREAD: files that the assistant read again, and whether it was still shown what it had read.


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
    for index, payload in enumerate(recording.payloads):
        message = reader.read(payload)
        answers.update(message.returns)
        read = [(path, call.id) for call in message.calls if (path := _read_path(call))]
        for path in dict.fromkeys(path for path, _ in read):
            earlier = [(call, answers[call]) for call in calls.get(path, ()) if call in answers]
            if earlier:
                found.append(Reread(index, path, tuple(earlier)))
        for path, call in read:
            calls.setdefault(path, []).append(call)
    return found


def rereads_lost(replay: Replay, reader: Reader) -> Share:
    """Of the files that were read again, those of which no earlier read was in the view."""
    views = {request.at: request.view for request in replay.requests}
    repeats = rereads(replay.recording, reader)
    lost = 0
    for reread in repeats:
        shown = {pair for payload in views[reread.at] for pair in reader.read(payload).returns}
        lost += shown.isdisjoint(reread.earlier)
    return Share(lost, len(repeats))


def _read_path(call: Call) -> str | None:
    if call.tool.lower() not in _READ_TOOLS or not isinstance(call.arguments, dict):
        return None
    values = (call.arguments.get(name) for name in _PATH_ARGUMENTS)
    return next((value for value in values if isinstance(value, str)), None)


# LR-UIR: of the old identifiers that the assistant used again, how many it was still shown.
#
# At each assistant message we take the identifiers it wrote, in text and in the arguments of calls,
# that had appeared before, but last more than `gap` tokens ago. An identifier counts as retained
# when a message of the view that was sent then holds it.


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
        retained = sum(
            any(use.identifier in self._reader.identifiers(payload) for payload in views[use.at])
            for use in uses
        )
        return Share(retained, len(uses))

    def reuses(self, recording: Recording) -> Iterator[Reuse]:
        """Where the assistant used an old identifier."""
        last: dict[str, int] = {}
        position = 0
        for index, payload in enumerate(recording.payloads):
            message = self._reader.read(payload)
            names = self._reader.identifiers(payload)
            if message.speaker == "assistant":
                for name in sorted(names):
                    if name in last and position - last[name] > self._gap:
                        yield Reuse(index, name)
            position += message.tokens
            last.update(dict.fromkeys(names, position))
