"""What the chats that are measured have in common: a home, a store, a provider on loopback."""

import asyncio
import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.chat_pty import Drawn
from refold.log import Author, Message, Opened
from refold.stores import SqliteStore

TESTS = Path(__file__).parents[1] / "tests"
REFOLD = str(Path(sys.executable).parent / "refold")
MODEL = "local:scripted"


@dataclass(frozen=True)
class Ground:
    """A folder with a home and stores, and a provider that answers by a script."""

    folder: Path
    provider: Any

    @property
    def env(self) -> dict[str, str]:
        """No key, no setting and no file of who runs this."""
        path = os.environ.get("PATH", "")
        return {
            "PATH": path,
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }

    def chat(self, store: str, *words: str, **more: str) -> Drawn:
        """A chat that begins now."""
        env = {**self.env, "REFOLD_STORE": f"sqlite:///{self.folder / store}", **more}
        asked = [REFOLD, "chat", "-m", "local", "--base-url", self.provider.url, *words]
        return Drawn(asked, env, self.folder)

    def settle(self, toml: str) -> None:
        """Write the settings of all chats that begin after this."""
        (self.folder / "refold.toml").write_text(toml, encoding="utf-8")

    def keep(self, store: str, session: str, messages: Iterable[bytes]) -> None:
        """Write a session into a store."""
        asyncio.run(_kept(self.folder / store, session, messages))


@contextmanager
def ground(**more: Any) -> Generator[Ground]:  # noqa: ANN401 - what the provider takes
    """A folder and a provider, for as long as they are needed."""
    sys.path.insert(0, str(TESTS))
    provider = import_module("terminal.provider").Provider(keep=1, **more)
    with TemporaryDirectory() as folder:
        provider.start()
        try:
            yield Ground(Path(folder), provider)
        finally:
            provider.stop()


async def _kept(path: Path, session: str, messages: Iterable[bytes]) -> None:
    author = Author()
    async with SqliteStore(str(path)) as store:
        drafts = [author.draft(Message(one)) for one in messages]
        opened = author.draft(Opened("pydantic-ai", "balanced", "A long session"))
        await store.log().append(session, [opened, *drafts], expected=0)
