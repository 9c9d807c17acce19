"""Generated sessions: the messages of an agent at work, as Pydantic AI 2.66 writes them in JSON.

A turn is a prompt, one to six steps (a short text and a call; its return of 200 to 4,000
characters), and a closing text. The same count and seed give the same bytes on every machine.
A message is 1.2 KB of JSON on average, and its texts about 143 tokens of four characters.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

INSTRUCTIONS = "You are a careful engineer. Read before you write, and say what you changed."
TOKENS_EACH = 143
LARGEST_REQUEST = 150_000
"""What the session's usage never exceeds: it was told in requests that fit a model."""

_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_TOOLS = (("read_file", "path"), ("search", "pattern"), ("run", "command"), ("list", "path"))
_SYLLABLES = [one + other for one in "bdfgklmnprst" for other in "aeiou"]
_MARKS = (".\n", ',"', '"', " é", " →", ";\n    ")

# Filled in rather than dumped: it is quicker, and 100,000 of them are made.
_REQUEST = (
    '{"parts":[%(part)s],"timestamp":"%(time)s","instructions":"'
    + INSTRUCTIONS
    + '","kind":"request","run_id":"run","conversation_id":"session","metadata":null,'
    '"state":"complete"}'
)
_PROMPT = '{"content":%(text)s,"timestamp":"%(time)s","part_kind":"user-prompt"}'
_RETURN = (
    '{"tool_name":"%(tool)s","content":%(text)s,"tool_call_id":"%(call)s","tool_kind":null,'
    '"metadata":null,"timestamp":"%(time)s","outcome":"success","retry":null,'
    '"part_kind":"tool-return"}'
)
_RESPONSE = (
    '{"parts":[%(parts)s],"usage":{"input_tokens":%(given)d,"cache_write_tokens":0,'
    '"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":%(made)d,'
    '"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,'
    '"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},'
    '"model_name":"model","model_id":null,"timestamp":"%(time)s","kind":"response",'
    '"provider_name":"provider","provider_url":null,"canonical_system":null,'
    '"provider_details":null,"provider_response_id":null,"finish_reason":"%(finish)s",'
    '"run_id":"run","conversation_id":"session","metadata":null,"workspace_ref":null,'
    '"history_digest":null,"failed_attempts":null,"state":"complete"}'
)
_TEXT = (
    '{"content":%s,"id":null,"provider_name":null,"provider_details":null,"citations":null,'
    '"part_kind":"text"}'
)
_CALL = (
    '{"tool_name":"%(tool)s","args":%(args)s,"tool_call_id":"%(call)s","tool_kind":null,'
    '"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}'
)
_json = json.JSONEncoder(ensure_ascii=False).encode


def session(count: int, seed: int = 1) -> list[bytes]:
    """The messages of a session of whole turns; `count` is even and at least 4."""
    if count < 4 or count % 2:
        raise ValueError(f"turns have 4, 6, … 14 messages: {count} messages are no whole turns")
    return list(_Writer(seed).write(count))


def live(count: int, seed: int = 1) -> list[bytes]:
    """What comes after `session(count)`: one more turn, of 8 messages, and the next prompt."""
    writer = _Writer(seed + count, told=count * TOKENS_EACH, said=count)
    return [*writer.turn(3), writer.prompt()]


class _Writer:
    """Writes one message after another, and keeps count of what was told."""

    def __init__(self, seed: int, told: int = 0, said: int = 0) -> None:
        self.random = Random(seed)
        self.pool = _pool(Random(seed))
        self.told = told
        self.said = said

    def write(self, count: int) -> Iterator[bytes]:
        while count:
            steps = min(self._between(1, 6), count // 2 - 1)
            if count - 2 - 2 * steps == 2:  # two left would be a turn without a step
                steps += 1 if steps == 1 else -1
            count -= 2 + 2 * steps
            yield from self.turn(steps)

    def turn(self, steps: int) -> Iterator[bytes]:
        yield self.prompt()
        for _ in range(steps):
            tool, argument = _TOOLS[self._between(0, len(_TOOLS) - 1)]
            call = f"call_{self.said:08d}"
            yield self._step(tool, argument, call)
            yield self._return(tool, call)
        text = self._words(100, 500)
        yield self._response(_TEXT % _json(text), len(text), "stop")

    def prompt(self) -> bytes:
        time = self._time()
        return self._request(_PROMPT % {"text": _json(self._words(40, 400)), "time": time}, time)

    def _step(self, tool: str, argument: str, call: str) -> bytes:
        text = self._words(20, 200)
        args = _json({argument: self._words(10, 80)})
        called = _CALL % {"tool": tool, "args": _json(args), "call": call}
        parts = f"{_TEXT % _json(text)},{called}"
        return self._response(parts, len(text) + len(args), "tool_call")

    def _return(self, tool: str, call: str) -> bytes:
        # Short ones come more often than long ones.
        text = self._words(200, self._between(200, 4_000))
        time = self._time()
        values = {"tool": tool, "text": _json(text), "call": call, "time": time}
        return self._request(_RETURN % values, time)

    def _request(self, part: str, time: str) -> bytes:
        self.said += 1
        return (_REQUEST % {"part": part, "time": time}).encode()

    def _response(self, parts: str, characters: int, finish: str) -> bytes:
        made = characters // 4
        values = {
            "parts": parts,
            "given": min(self.told - made, LARGEST_REQUEST),
            "made": made,
            "time": self._time(),
            "finish": finish,
        }
        self.said += 1
        return (_RESPONSE % values).encode()

    def _words(self, least: int, most: int) -> str:
        length = self._between(least, most)
        self.told += length // 4
        start = self._between(0, len(self.pool) - length)
        return self.pool[start : start + length]

    def _between(self, least: int, most: int) -> int:
        return least + int(self.random.random() * (most - least + 1))

    def _time(self) -> str:
        return (_BEGAN + timedelta(seconds=5 * self.said)).isoformat()[:19] + "Z"


def _pool(random: Random) -> str:
    """Words to cut texts from, with the quotes, line ends and accents that JSON must carry."""
    words: list[str] = []
    for at in range(10_000):
        word = "".join(random.choice(_SYLLABLES) for _ in range(random.randint(1, 4)))
        words.append(word + (random.choice(_MARKS) if at % 12 == 11 else ""))
    return " ".join(words)
