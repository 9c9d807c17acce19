"""Makes the pictures of the console in docs/pictures: `python tools/console_pictures.py`.

It plays the demo into a store of its own, serves that, and looks at it with Chromium, in light and
dark, wide and narrow. Times and random ids differ each time, so nothing compares the pictures.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

from playwright.async_api import Browser, async_playwright

from refold.cli.demo.play import play
from refold.console.access import Access
from refold.console.app import open_address
from refold.console.local import LocalConsole, application
from refold.log import Author, Requested, Titled
from refold.service import server
from refold.settings import load_settings
from refold.stores import SqliteStore

PICTURES: Final = Path(__file__).parent.parent / "docs" / "pictures"
WIDE, NARROW = (1280, 860), (390, 844)
FORKS: Final = {"booking-review": 60, "booking-tests": 92, "refund-reference": 104}
"""More sessions for the list: forks of the demo, and of how much of it."""


class Picture(NamedTuple):
    """A picture: where it is taken, and how."""

    name: str
    path: str
    size: tuple[int, int] = WIDE
    scheme: str = "light"
    click: str = ""
    """What is opened first."""
    top: str = ""
    """What is scrolled to the top."""


def pictures(later: int, earlier: int, fold: int) -> list[Picture]:
    """What is pictured, with two requests of the demo and the compaction between them."""
    session = "/console/sessions/demo"
    summary = f"{session}/folds/{fold}/summary"
    return [
        Picture("sessions", "/console?q=refund"),
        Picture("timeline", session, click="details.fold > summary", top=".session-head"),
        Picture("window", f"{session}/window"),
        Picture("request", f"{session}/requests/{later}"),
        Picture("difference", f"{session}/requests/{later}/since/{earlier}"),
        Picture("fold", summary, top="#claims"),
        Picture("dark", session, scheme="dark", top="details.fold"),
        Picture("narrow", session, NARROW, top=".timeline"),
        Picture("narrow-dark", f"{session}/window", NARROW, "dark"),
    ]


async def played(path: Path) -> tuple[int, int, int]:
    """A store with the demo and more sessions; its last compaction, and the requests around it."""
    async with SqliteStore(path) as store:
        await play(store=store)
        log = store.log()
        for name, at in FORKS.items():
            await log.fork("demo", name, at=at)
            await log.append(name, [Author().draft(Titled(name.replace("-", " ")))], expected=None)
        entries = await log.read("demo")
        fold = (await log.outlined("demo")).outline.folds[-1].seq
        requests = [entry.seq for entry in entries if entry.kind == Requested.KIND]
    return min(x for x in requests if x > fold), max(x for x in requests if x < fold), fold


async def take(browser: Browser, where: str, access: Access, picture: Picture, out: Path) -> None:
    """Take one picture with a browser that signs in anew."""
    width, height = picture.size
    scheme: Any = picture.scheme
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme
    )
    page = await context.new_page()
    await page.goto(open_address(where, access.new_token(), picture.path))
    await page.wait_for_timeout(700)
    if picture.click:
        await page.locator(picture.click).first.click()
        await page.wait_for_timeout(700)
    if picture.top:
        await page.evaluate(
            "(at) => scrollTo(0, document.querySelector(at).getBoundingClientRect().top + scrollY"
            " - 60)",
            picture.top,
        )
        await page.wait_for_timeout(300)
    await page.screenshot(path=out / f"console-{picture.name}.png")
    await context.close()


async def main(out: Path) -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("Chromium is not installed: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "refold.db"
        later, earlier, fold = await played(path)
        state = LocalConsole(load_settings(), SqliteStore(path, create=False))
        access = Access(state)
        sock = server.listen("127.0.0.1", 0)
        started = asyncio.Event()
        serving = asyncio.create_task(server.serve(application(state, access), sock, started.set))
        await started.wait()
        where = server.address_of(sock)
        async with async_playwright() as playwright:
            arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = await playwright.chromium.launch(executable_path=chromium, args=arguments)
            for picture in pictures(later, earlier, fold):
                await take(browser, where, access, picture, out)
            await browser.close()
        serving.cancel()
        await asyncio.wait({serving})
        sock.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES))
