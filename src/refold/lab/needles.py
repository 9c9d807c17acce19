"""PNR: sentences planted in a recording, and how many of them the last request still holds."""

from dataclasses import dataclass, replace
from hashlib import sha256

from pydantic import JsonValue, TypeAdapter

from refold.errors import InvalidInput
from refold.lab import messages as make
from refold.lab.metrics import Share
from refold.lab.reading import Reader, Speaker
from refold.lab.recording import Recording
from refold.lab.replay import Replay

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
