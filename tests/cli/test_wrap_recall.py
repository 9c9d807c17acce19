"""An agent under `refold wrap` whose model finds by recall what left its window."""

import json
import random
import re

import pytest
from test_wrap import wrapping

from refold.log import CODEC, FoldCompleted
from refold.stores import open_store
from refold.testing.upstream import Call, Reply

WINDOW = 16_000
TURNS = 14
SHELF = "90417"


def shelves(note):
    """What a file of the project has: many lines that are alike, and one that is asked for."""
    chosen = random.Random(note)  # noqa: S311 - the same each time
    lines = [
        f"parcel {note}-{row} stands on shelf {chosen.randint(10_000, 80_000)}" for row in range(90)
    ]
    if note == 0:
        lines[41] = f"parcel 0-41 stands on shelf {SHELF}"
    return "\n".join(lines)


class Model:
    """Reads a file in each turn; in the last one, it looks for what an early file said."""

    def __init__(self):
        self.recalled = ""
        self.without = 0
        self.calls = 0

    def __call__(self, got):
        body = got.body
        text = json.dumps(body)
        last = json.dumps((body.get("messages") or body["input"])[-1])
        tools = body["tools"] if "tools" in body else body["input"][0]["tools"]
        offered = [tool["name"] for tool in tools]
        asked = "Where does parcel 0-41 stand?" in text
        if "read the next file" in last and not asked:
            return self._call("Read", {}, offered)
        if not asked:
            return Reply("I have read it.")
        if "Where does parcel 0-41 stand?" in last:
            # It is not in view any more: nobody could answer from this request.
            self.without = text.count(SHELF)
            self.hinted = "recall_search, and read an entry in full with" in text
            return self._call("mcp__refold__recall_search", {"query": "parcel 0-41 shelf"}, offered)
        self.recalled = SHELF if SHELF in last else ""
        return Reply(f"It stands on shelf {self.recalled}.")

    def _call(self, tool, arguments, offered):
        assert tool in offered
        self.calls += 1
        return Reply("", (Call(f"call_{self.calls}", tool, arguments),))


@pytest.mark.parametrize(
    ("name", "more"), [("claude", {}), ("codex", {}), ("codex", {"AGENT_LITE": "1"})]
)
async def test_what_left_the_window_is_found_by_recall_alone(tmp_path, name, more):
    model = Model()
    async with wrapping(tmp_path, model) as wrapped:
        settings = wrapped.home / "config" / "refold"
        settings.mkdir(parents=True)
        names = ("claude-sonnet-4-5", "gpt-5-mini")
        text = "".join(f'[models."{model}"]\nwindow = {WINDOW}\n' for model in names)
        (settings / "config.toml").write_text(text)
        process, agent = await wrapped.run(name, **more)
        sessions = set()
        for turn in range(TURNS):
            done = await agent.ask(f"Turn {turn}: read the next file.", shelves(turn))
            sessions.add(done["session"])
        found = await agent.ask("Where does parcel 0-41 stand?")
        sessions.add(found["session"])
        assert (model.without, model.hinted) == (0, True)
        assert found["text"] == f"It stands on shelf {SHELF}."
        assert f"parcel 0-41 stands on shelf {SHELF}" in found["results"][0]
        assert len(sessions) == 1
        _, said = await wrapped.ended(process, agent)
        address = f"sqlite:///{wrapped.home / 'data' / 'refold' / 'refold.db'}"
        async with open_store(address, create=False) as store:
            entries = await store.log().read(sessions.pop())
        folds = sum(isinstance(CODEC.decode(entry), FoldCompleted) for entry in entries)
        # One more may have been under way when the agent ended.
        [counted] = map(int, re.findall(r"(\d+) compactions?;", said))
        assert 1 <= folds - 1 <= counted <= folds or counted == folds == 1
        assert "with the full history in each request" in said
        assert "per request for the recall tools" in said
