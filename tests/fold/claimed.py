"""True and false points about conversations, written by hand, and what becomes of each.

`development.toml` is what the rules were fitted to; nothing is fitted to `held_out.toml`. Two
summaries that a model wrote of a recorded session are read from REFOLD_DATA.
"""

import json
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from project_paths import DATA

from refold.fold.ground import ground
from refold.fold.ground.evidence import split
from refold.fold.material import Material, Passage
from refold.fold.summary import Claim
from refold.fold.write.draft import Draft, DraftClaim, from_text
from refold.log.text import words
from refold.transcripts.pi import parse_pi
from refold.wire import Shape, wire_for

FOLDER = Path(__file__).parent / "claims"
RECORDED = DATA / "pi_before-compaction.jsonl"
Fate = Literal["unsourced", "quoted", "marked", "changed", "removed"]


class Point(NamedTuple):
    """A point that a model could write, with the quote that it would give."""

    world: str
    kind: str
    true: bool
    text: str
    entry: int
    quote: str

    @property
    def claim(self) -> DraftClaim:
        return DraftClaim("decisions", self.text, (self.entry,), self.quote)


class Outcome(NamedTuple):
    """How a point is shown."""

    fate: Fate
    claim: Claim | None


@cache
def worlds(name: str) -> dict[str, tuple[Material, tuple[Point, ...]]]:
    """The conversations of a file, with the points about each."""
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    return {
        one["name"]: (_material(one), tuple(_points(one))) for one in tomllib.loads(text)["world"]
    }


def _material(world: dict) -> Material:
    return Material(tuple(map(_passage, world["entry"])))


def _passage(entry: dict) -> Passage:
    match entry["who"]:
        case "user":
            return Passage(entry["n"], "user", (Shape("prompt", entry["text"]),))
        case "assistant":
            return Passage(entry["n"], "assistant", (Shape("text", entry["text"]),))
        case _:
            return Passage(
                entry["n"], "user", (Shape("return", entry["text"], tool=entry.get("tool")),)
            )


def _points(world: dict) -> Iterator[Point]:
    for true in (True, False):
        for one in world.get("true" if true else "false", ()):
            yield Point(world["name"], one["kind"], true, one["text"], one["entry"], one["quote"])


def judge(point: Point, material: Material, *, entries: bool = True) -> Outcome:
    """What becomes of a point; without `entries`, its quote alone says where it comes from."""
    claim = point.claim if entries else DraftClaim("decisions", point.text, (), point.quote)
    sections = ground(Draft("", (claim,)), material).sections
    if not sections:
        return Outcome("removed", None)
    [shown] = sections[0].claims
    if not shown.text:
        return Outcome("quoted", shown)
    if " ".join(shown.text.split()) != " ".join(point.text.split()):
        return Outcome("changed", shown)
    if shown.against or shown.outdated:
        return Outcome("marked", shown)
    return Outcome("unsourced", shown)


def best_quote(point: Point, material: Material) -> Point:
    """The point with the sentence of the log that has most of its words, as an adversary quotes."""
    own = {*words(point.text.lower())}
    found = [
        (len(own & {*words(sentence.lower())}), -len(sentence), passage.seq, sentence)
        for passage in material.passages
        for shape in passage.shapes
        for sentence in split(shape.text)
    ]
    _, _, seq, sentence = max(found)
    return point._replace(entry=seq, quote=sentence)


def recorded() -> Iterator[tuple[Draft, Material]]:
    """The recorded summaries, each with what it was written of."""
    lines = RECORDED.read_bytes().splitlines()
    wire = wire_for("pydantic-ai")
    for at, line in enumerate(lines):
        record = json.loads(line)
        if record["type"] == "compaction":
            described = map(wire.describe, parse_pi(lines[:at], "pi").payloads)
            passages = (Passage(seq, one.role, one.shapes) for seq, one in enumerate(described, 1))
            yield from_text(record["summary"]), Material(tuple(passages))
