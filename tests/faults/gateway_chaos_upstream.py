"""The models behind the gateways of the chaos test: they check what they are sent."""

import asyncio
import re
from collections import Counter
from random import Random
from typing import Any
from uuid import uuid4

from gateway_chaos_formats import MESSAGES

from refold.gateway.dialects import DIALECTS
from refold.testing.upstream import Call, Got, Refusal, Reply, ScriptedUpstream
from refold.wire import wire_for

KNOWN, UNKNOWN = "chaos-known", "chaos-unknown"
"""The models: of one the settings tell the window, of the other its refusals do."""
WINDOW = 5_000
OWN = re.compile(rb"\b[ua]-(\d+-\d+)-[0-9a-f]{8}")
"""What is said, and whose conversation it was said in."""
TALK, SAYS, CALM = "x-chaos-talk", "x-chaos-says", "x-chaos-calm"
"""Headers of the clients: which conversation, what is new in it, and whether all is to go well."""
_SHOWN = 20
_WORDS = "it stands where it stood, and is as it was when we last looked; "


class Models:
    """Answers of every kind, and of every kind of failure."""

    def __init__(self, seed: int):
        self._random = Random(seed)  # noqa: S311 - what is answered, no secret
        self.figures: Counter[str] = Counter()
        self.wrong: list[str] = []

    async def reply(self, got: Got) -> Reply | Refusal:
        if got.path == "/figures":
            return Refusal(200, {"figures": self.figures, "wrong": self.wrong[:_SHOWN]})
        size = len(got.raw) // 4
        talk = got.headers.get(TALK)
        if talk is None:
            self.figures["summaries"] += 1
            return Reply("## State\n- The work goes on as before. [2]\n", usage=(size, 20))
        self.figures["requests"] += 1
        self._check(got, talk)
        if size > WINDOW:
            self.figures["overflows"] += 1
            return _too_long(got.path, size)
        calm = CALM in got.headers
        await asyncio.sleep(self._random.random() / 5)
        chance = 1.0 if calm else self._random.random()
        if chance < 0.04:
            self.figures["errors"] += 1
            return Refusal(self._random.choice([429, 500, 503]), {"error": {"message": "scripted"}})
        return self._answer(talk, size, breaks=chance < 0.08, calm=calm)

    def _answer(self, talk: str, size: int, *, breaks: bool, calm: bool) -> Reply:
        token = f"a-{talk}-{uuid4().hex[:8]}"
        acts = not calm and self._random.random() < 0.3
        count = self._random.randint(1, 2) if acts else 0
        calls = [Call(f"{token}_{nth}", "look", {"what": token, "n": nth}) for nth in range(count)]
        words = "" if acts and self._random.random() < 0.5 else self._words(token)
        self.figures["breaks"] += breaks
        return Reply(
            words,
            tuple(calls),
            usage=(size, len(words) // 4 + 10),
            thought="Let me see." if self._random.random() < 0.2 else "",
            breaks_after=self._random.randint(0, 6) if breaks else None,
            pieces=self._random.randint(1, 8),
            pause=self._pause,
        )

    def _words(self, token: str) -> str:
        return f"{token}: {_WORDS * self._random.randint(1, 12)}"

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.choice([0, 0, 0.05, 0.3, 1.0]))

    def _check(self, got: Got, talk: str) -> None:
        """A provider would take it, it asks what the client asked, and holds nobody else's."""
        asked = DIALECTS[got.path].read(got.raw)
        problems = wire_for(DIALECTS[got.path].name).problems(asked.messages)
        if asked.unmanaged or problems:
            self.wrong.append(f"{talk} {got.path}: {asked.unmanaged}, {problems[:3]}")
        says = got.headers[SAYS]
        if says.encode() not in got.raw:
            self.wrong.append(f"{talk} {got.path}: it does not say {says}")
        others = {one.decode() for one in OWN.findall(got.raw)} - {talk}
        if others:
            self.wrong.append(f"{talk} {got.path}: it holds words of {others}")


def _too_long(path: str, size: int) -> Refusal:
    if path == MESSAGES:
        said = f"prompt is too long: {size} tokens > {WINDOW} maximum"
        error: dict[str, Any] = {"type": "invalid_request_error", "message": said}
        return Refusal(400, {"type": "error", "error": error})
    said = (
        f"This model's maximum context length is {WINDOW} tokens. However, your messages "
        f"resulted in {size} tokens. Please reduce the length of the messages."
    )
    code = "context_length_exceeded"
    return Refusal(400, {"error": {"message": said, "type": "invalid_request_error", "code": code}})


def upstream_of(models: Models) -> ScriptedUpstream:
    return ScriptedUpstream(models.reply, keep=False)
