"""Makes the pictures of the console in docs/pictures: `python tools/console_pictures.py`.

A folder and names of screens may follow: `python tools/console_pictures.py pictures what-if`. In
another folder, each screen gets a picture in light and dark, wide and narrow; for the docs, the
dark and the narrow ones are put together on sheets.

It plays the demo into a store of its own, serves that, and looks at it with Chromium. Times and
random ids differ each time, so nothing compares the pictures.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from uuid import uuid4

from playwright.async_api import Browser, async_playwright
from pydantic import JsonValue

from refold.cli.demo.play import play
from refold.console.access import Access
from refold.console.app import open_address
from refold.console.local import LocalConsole, application
from refold.log import (
    Author,
    Draft,
    FoldCompleted,
    FoldStarted,
    FoldStepped,
    Log,
    Message,
    Opened,
    Requested,
    Span,
    Titled,
    Used,
)
from refold.service import server
from refold.settings import load_settings
from refold.stores import SqliteStore

PICTURES: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDE, NARROW = (1280, 860), (390, 844)
TRIED: Final = "/console/what-if?session=long-review&trigger.tokens=30000"
_TURNS: Final = 40
FORKS: Final = {"booking-review": 60, "booking-tests": 92, "refund-reference": 104}
"""More sessions for the list: forks of the demo, and of how much of it."""


TASKS: Final = ("review", "migration", "flaky-test", "support", "release-notes")
MODELS: Final = (("anthropic:claude-sonnet-4-5", 3.0), ("openai:gpt-5-mini", 0.25))
_WEEKEND: Final = 5


class Screen(NamedTuple):
    """What is pictured."""

    name: str
    path: str
    click: str = ""
    """What is opened first."""
    top: str = ""
    """What is scrolled to the top."""
    wait: str = ""
    """What takes a while to appear."""


class Look(NamedTuple):
    """How it is looked at."""

    scheme: str
    size: tuple[int, int]

    @property
    def suffix(self) -> str:
        """What its files have in their names, where there are others."""
        return f"{self.scheme}-{self.size[0]}"


PLAIN: Final = Look("light", WIDE)
SHEETS: Final = {
    "dark": (Look("dark", WIDE), 2),
    "narrow": (Look("light", NARROW), 4),
    "narrow-dark": (Look("dark", NARROW), 4),
}
"""Pictures of all screens together, and how many are side by side."""
_SHEET: Final = 1_600
_GAP: Final = 20


def screens(later: int, earlier: int, fold: int) -> list[Screen]:
    """What is pictured, with two requests of the demo and the compaction between them."""
    session = "/console/sessions/demo"
    summary = f"{session}/folds/{fold}/summary"
    return [
        Screen("sessions", "/console?q=refund"),
        Screen("timeline", session, click="details.fold > summary", top=".session-head"),
        Screen("window", f"{session}/window"),
        Screen("request", f"{session}/requests/{later}"),
        Screen("difference", f"{session}/requests/{later}/since/{earlier}"),
        Screen("fold", summary, top="#claims"),
        Screen("money", "/console/money"),
        Screen("what-if", TRIED, click="main form button", wait=".scatter circle"),
    ]


def more_screens(fold: int) -> list[Screen]:
    """What is looked at, and not in the docs."""
    session = "/console/sessions/demo"
    return [
        Screen("list", "/console"),
        Screen("summary", f"{session}/folds/{fold}/summary"),
        Screen("compact", "/console/sessions/long-review/folds/new"),
        Screen("costs", "/console/sessions/tiny-fixes/costs"),
        Screen("try", "/console/what-if?session=long-review&session=demo"),
        Screen("problem", "/console/sessions/none"),
        Screen("empty", "/console?q=okapi"),
    ]


async def played(path: Path) -> tuple[int, int, int]:
    """A store with the demo and more sessions; its last compaction, and the requests around it."""
    async with SqliteStore(path) as store:
        await play(store=store)
        log = store.log()
        for name, at in FORKS.items():
            await log.fork("demo", name, at=at)
            await log.append(name, [Author().draft(Titled(name.replace("-", " ")))], expected=None)
        await paid(log)
        drafts = [Author().draft(each) for each in long_talk()]
        await log.append("long-review", drafts, expected=0)
        entries = await log.read("demo")
        fold = (await log.outlined("demo")).outline.folds[-1].seq
        requests = [entry.seq for entry in entries if entry.kind == Requested.KIND]
    return min(x for x in requests if x > fold), max(x for x in requests if x < fold), fold


async def paid(log: Log) -> None:
    """Sessions of a month, as a small team would have had them; one of them became dearer."""
    random, now = Random(7), datetime.now(UTC)  # noqa: S311 - the same each time
    for day in range(30):
        moment = now - timedelta(days=29 - day, hours=1)
        author = Author(lambda moment=moment: moment)
        for nth in range(random.randint(0, 3) if moment.weekday() < _WEEKEND else 0):
            name = f"{random.choice(TASKS)}-{day:02}{nth}"
            await log.append(name, [author.draft(Opened("openai-chat", "balanced"))], expected=0)
            requests = random.randint(20, 60)
            await log.append(name, [*_requests(author, random, requests)], expected=None)
    author = Author()
    await log.append("tiny-fixes", [author.draft(Opened("openai-chat", "balanced"))], expected=0)
    await log.append("tiny-fixes", [*_requests(author, random, 1)], expected=None)
    fold, span = uuid4(), (Span(1, 1),)
    step = FoldStepped(
        fold, "summary", {}, {"usage": {"input": 9_000, "output": 900}, "cost": 0.04}
    )
    values = (
        FoldStarted(fold, span, "manual"),
        step,
        FoldCompleted(fold, span, {"text": "Short."}),
    )
    await log.append("tiny-fixes", [author.draft(each) for each in values], expected=None)
    await log.append("tiny-fixes", [*_requests(author, random, 3, gain=0.9)], expected=None)


def _requests(author: Author, random: Random, count: int, gain: float = 2.6) -> Iterator[Draft]:
    """What so many requests of a session used, which grow at first; most is read from the cache."""
    model, price = random.choice(MODELS)
    prices: JsonValue = {
        "input": price,
        "output": 5 * price,
        "cache_read": price / 10,
        "cache_write": 1.25 * price,
    }
    earlier = 0
    for nth in range(count):
        sent = 9_000 + 1_200 * min(nth, 30) + random.randint(0, 900)
        whole = int(9_000 + (sent - 9_000) * (gain if nth > count // 3 else 1))
        read, earlier = earlier, sent
        usage: JsonValue = {"input": sent, "output": 400, "cache_read": read, "cache_write": 0}
        cost = ((sent - read) * price + read * price / 10 + 400 * 5 * price) / 1_000_000
        basis: JsonValue = {
            "model": model,
            "whole": whole,
            "before": max(0, whole - 1_500) if nth else 0,
            "counted": sent,
            "limit": 190_000,
            "prices": prices,
            "added": 300,
        }
        yield author.draft(Used(0, usage, cost, None, basis))


def long_talk() -> Iterator[Opened | Message]:
    """A session that is long enough to be replayed: it uses the names of its beginning again."""
    yield Opened("openai-chat", "balanced")
    for turn in range(_TURNS):
        call = {"name": "read", "arguments": json.dumps({"path": f"src/service_{turn}.py"})}
        calls = [{"id": f"c{turn}", "type": "function", "function": call}]
        code = "".join(f"def step_{turn}_{nth}(order): ...\n" for nth in range(120))
        words = f"step_{turn // 2}_7 in src/service_{turn // 2}.py does the same as step_{turn}_1."
        for message in (
            {"role": "user", "content": f"Review src/service_{turn}.py, please."},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": code},
            {"role": "assistant", "content": words},
        ):
            yield Message(json.dumps(message).encode())


class Camera(NamedTuple):
    """A browser, and the console that it looks at."""

    browser: Browser
    where: str
    access: Access
    results: dict[str, str]
    """Where what took a while appeared, by the screen: it is not waited for again."""

    async def take(self, screen: Screen, look: Look) -> bytes:
        """Take one picture with a browser that signs in anew."""
        width, height = look.size
        scheme: Any = look.scheme
        context = await self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        page = await context.new_page()
        result = self.results.get(screen.name)
        path = result or screen.path
        await page.goto(open_address(self.where, self.access.new_token(), path))
        await page.wait_for_timeout(700)
        if screen.click and not result:
            await page.locator(screen.click).first.click()
            await page.wait_for_timeout(700)
        if screen.wait:
            await page.locator(screen.wait).first.wait_for(timeout=900_000)
            self.results[screen.name] = page.url.removeprefix(self.where)
        if screen.top:
            await page.evaluate("(at) => document.querySelector(at).scrollIntoView()", screen.top)
            await page.wait_for_timeout(300)
        picture = await page.screenshot()
        await context.close()
        return picture

    async def sheet(self, pictures: list[bytes], look: Look, columns: int) -> bytes:
        """One picture of many, in rows."""
        width = (_SHEET - (columns + 1) * _GAP) // columns
        images = (
            f'<img width="{width}" src="data:image/png;base64,{b64encode(each).decode()}">'
            for each in pictures
        )
        behind = "#2b2d31" if look.scheme == "dark" else "#e4e4e8"
        page = await self.browser.new_page(viewport={"width": _SHEET, "height": 600})
        await page.set_content(
            f'<body style="margin:0;padding:{_GAP}px;box-sizing:border-box;background:{behind};'
            f'display:flex;flex-wrap:wrap;gap:{_GAP}px">{"".join(images)}'
        )
        await page.wait_for_function("[...document.images].every((x) => x.complete)")
        picture = await page.screenshot(full_page=True)
        await page.close()
        return picture


async def photograph(
    camera: Camera, every: list[Screen], out: Path, *, docs: bool, sheets: bool
) -> None:
    """Write the pictures of these screens."""
    for screen in every:
        for look in [PLAIN] if docs else [PLAIN, *(look for look, _ in SHEETS.values())]:
            name = screen.name if docs else f"{screen.name}-{look.suffix}"
            (out / f"console-{name}.png").write_bytes(await camera.take(screen, look))
    if sheets:
        for name, (look, columns) in SHEETS.items():
            pictures = [await camera.take(screen, look) for screen in every]
            sheet = await camera.sheet(pictures, look, columns)
            (out / f"console-{name}.png").write_bytes(sheet)


async def main(out: Path, *names: str) -> None:
    """Take all pictures, or those of these names."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("Chromium is not installed: apt-get install chromium")
    docs = out == PICTURES
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "refold.db"
        later, earlier, fold = await played(path)
        every = [*screens(later, earlier, fold), *([] if docs else more_screens(fold))]
        state = LocalConsole(load_settings(), SqliteStore(path, create=False))
        access = Access(state)
        sock = server.listen("127.0.0.1", 0)
        started = asyncio.Event()
        serving = asyncio.create_task(server.serve(application(state, access), sock, started.set))
        await started.wait()
        async with async_playwright() as playwright:
            arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = await playwright.chromium.launch(executable_path=chromium, args=arguments)
            camera = Camera(browser, server.address_of(sock), access, {})
            wanted = [screen for screen in every if not names or screen.name in names]
            await photograph(camera, wanted, out, docs=docs, sheets=docs and not names)
            await browser.close()
        serving.cancel()
        await asyncio.wait({serving})
        sock.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else PICTURES, *sys.argv[2:]))
