"""The invented conversation, project and sessions that pictures of the terminal show."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from terminal.pieces import Call, Turn

from refold.log import Author, Message, Opened
from refold.log.codec import wall_clock
from refold.stores import SqliteStore

MODEL = "qwen3-8b"
WINDOW = 8_192
SETTINGS = f"""\
[models."local:{MODEL}"]
input_price = 1.0
output_price = 4.0
cache_read_price = 0.1
"""

README = """\
# Parcels

Plans the routes of a parcel service, every night at two.

- `parcels/night.py` runs the steps of a night, one after the other.
- `parcels/queue.py` holds the parcels that wait, shared by the depots.
- `logs/` keeps one file for each night.
"""

QUEUE = '''\
"""The parcels that wait, shared by all depots."""

import sqlite3
import time


class Queue:
    """One table; a depot takes what is its own."""

    def __init__(self, path: str) -> None:
        self.base = sqlite3.connect(path, timeout=30)

    def take(self, depot: str) -> list[int]:
        """Take every parcel of a depot out of the queue."""
        self.base.execute("BEGIN IMMEDIATE")
        rows = self.base.execute("SELECT id FROM waiting WHERE depot = ?", [depot]).fetchall()
        for (parcel,) in rows:
            self.base.execute("DELETE FROM waiting WHERE id = ?", [parcel])
            time.sleep(0.01)  # the scanners cannot be asked faster
        self.base.commit()
        return [parcel for (parcel,) in rows]
'''


def _night() -> str:
    depots = ("Tartu", "Narva", "Pärnu", "Viljandi", "Rakvere")
    lines = [
        f"02:{nth // 10:02}:{nth * 7 % 60:02} INFO  {depots[nth % 5]}: parcel {40_000 + 13 * nth} "
        f"goes to route {nth % 17 + 1}"
        for nth in range(140)
    ]
    return "\n".join([*lines, "02:14:31 ERROR Narva: database is locked", "02:14:31 INFO  stopped"])


PROJECT = {
    "README.md": README,
    "parcels/queue.py": QUEUE,
    "parcels/night.py": "from parcels.queue import Queue\n\nDEPOTS = ['Tartu', 'Narva']\n",
    "logs/2026-03-04.log": _night(),
}

OVERVIEW = """\
It plans the routes of a parcel service, every night at two.

- **The run** is `parcels/night.py`: it does one step after the other.
- **What waits** is in `parcels/queue.py`, one table that all depots share.
- **What happened** is in `logs/`, a file for each night.

Begin with `night.py`; it is short.
"""

WHY = """\
Narva could not write: `database is locked`, at 02:14:31. Somebody else held the queue for more
than the 30 seconds that `Queue` waits for it.
"""

LOCK = """\
In `take`. It begins a transaction, and then sleeps 10 ms for each parcel **inside** it:

```python
self.base.execute("BEGIN IMMEDIATE")
for (parcel,) in rows:
    self.base.execute("DELETE FROM waiting WHERE id = ?", [parcel])
    time.sleep(0.01)  # the scanners cannot be asked faster
```

3,200 parcels of one depot hold the lock for 32 seconds; the others give up after 30.
"""

FIX = """\
Take them at once, and wait afterwards, when nobody is held up:

```python
def take(self, depot: str) -> list[int]:
    with self.base:
        rows = self.base.execute(
            "DELETE FROM waiting WHERE depot = ? RETURNING id", [depot]
        ).fetchall()
    return [parcel for (parcel,) in rows]
```

| depot | parcels | lock before | lock now |
|-------|--------:|------------:|---------:|
| Narva |   3,200 |        32 s |    14 ms |
| Tartu |   1,150 |        12 s |     6 ms |
"""

TEST = """\
Two connections, and the second must not wait:

```python
def test_a_depot_does_not_hold_up_the_others(tmp_path):
    one, other = Queue(tmp_path / "q.db"), Queue(tmp_path / "q.db")
    one.take("Narva")
    assert other.take("Tartu") == []
```
"""

SAID = [
    ("What does this project do, and where would I begin?", "it is short"),
    ("Last night's run stopped at 02:14. Why?", "waits for it"),
    ("Where is the queue locked for so long?", "give up after 30"),
    ("Write the fix down; I will apply it.", "6 ms"),
]
"""What the person says, and what the answer ends with."""
AFTER = [
    ("How would a test of the fix look?", "== []"),
    ("Thank you. Remember: no release on Fridays.", "letter"),
]
LATER = ("Did anything else fail that night? Look again.", "Nothing else")

ANSWERS: list[Turn] = [
    [Call("list_files"), Call("read_file", {"path": "README.md"})],
    OVERVIEW,
    [Call("search_files", {"text": "ERROR", "path": "logs"})],
    [Call("read_file", {"path": "logs/2026-03-04.log"})],
    WHY,
    [Call("read_file", {"path": "parcels/queue.py"})],
    LOCK,
    FIX,
    [Call("read_file", {"path": "logs/2026-03-04.log", "first_line": 100})],
    "Nothing else: every line before 02:14:31 is a parcel that found its route.",
    TEST,
    "Done. Shall I write the letter to the depots, too?",
]

EARLIER = [
    ("night-runs", 0, "Last night's run stopped at 02:14. Why?"),
    ("routes-of-tartu", 1, "Route 7 visits the same street twice. Can you see the reason?"),
    ("holiday-letter", 3, "Draft a short letter to the depots about the holidays."),
    ("label-printer", 6, "The printer cuts the last line of each label off."),
    ("sql-refresher", 12, "Explain window functions to me with the parcels table."),
]
"""Names, days ago, and what was said first, of sessions that were kept."""
_ANSWERED = "Yes. I looked at it, and this is what I found, in short."


def remember(home: Path, name: str, days: int, said: str) -> None:
    """Keep a session in the person's own store, as if it had been said some days ago."""
    folder = home / ".local" / "share" / "refold"
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(_remember(folder / "refold.db", name, days, said))


async def _remember(path: Path, name: str, days: int, said: str) -> None:
    author = Author(clock=lambda: wall_clock() - timedelta(days=days, minutes=5))
    async with SqliteStore(str(path)) as store:
        drafts = [author.draft(one) for one in (Opened("pydantic-ai", "balanced"), *_turn(said))]
        await store.log().append(name, drafts, expected=0)


def _turn(said: str) -> Iterator[Message]:
    when = "2026-03-04T08:00:00Z"
    prompt = {"content": said, "timestamp": when, "part_kind": "user-prompt"}
    yield _message({"parts": [prompt], "kind": "request"})
    answer = {"content": _ANSWERED, "part_kind": "text"}
    yield _message({"parts": [answer], "kind": "response", "timestamp": when})


def _message(value: dict[str, Any]) -> Message:
    return Message(json.dumps(value, ensure_ascii=False).encode())


def recording() -> list[dict[str, Any]]:
    """A long session of an agent at work, in the form of OpenAI's chat completions."""
    found: list[dict[str, Any]] = [{"role": "system", "content": "You look after the routes."}]
    for turn in range(24):
        found.append({"role": "user", "content": f"Check the routes of night {turn + 1}."})
        for step in range(4):
            name = f"call-{turn}-{step}"
            night = max(0, turn - 10) if not step else turn  # it looks back now and then
            asked = {"path": f"logs/night-{night}.log", "first_line": 60 * step + 1}
            function = {"name": "read_file", "arguments": json.dumps(asked)}
            calls = [{"id": name, "type": "function", "function": function}]
            found.append({"role": "assistant", "content": None, "tool_calls": calls})
            found.append({"role": "tool", "tool_call_id": name, "content": _page(turn, step)})
        found.append({"role": "assistant", "content": f"Route {turn % 17 + 1} is too long."})
    return found


def _page(turn: int, step: int) -> str:
    lines = PROJECT["logs/2026-03-04.log"].splitlines()[30 * step : 30 * step + 40]
    return "\n".join(f"night {turn}: {line}" for line in lines)
