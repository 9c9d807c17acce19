"""A real `refold serve`, before an upstream of the test's, with keys of its own."""

import asyncio
import json
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from forked_serve import ForkedProcess, start_serve

from refold.service.keys import keyring_of
from refold.stores import open_store


@dataclass
class Serving:
    """The process, and clients of it."""

    process: ForkedProcess
    address: str
    store: str

    async def key(self, tenant, *roles, **more):
        """A new key of a tenant."""
        async with open_store(self.store) as store:
            return await keyring_of(store).create(tenant, roles or ["use"], **more)

    def client(self, secret=None, **how):
        """Somebody who asks with this key."""
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return httpx2.AsyncClient(base_url=self.address, timeout=120, headers=headers, **how)

    async def children(self, count=None):
        """The processes that it has started; waits until there are so many that have begun."""
        while True:
            found = [pid for pid, parent in parents() if parent == self.process.pid]
            if count is None or len(found) == count:
                return found
            await asyncio.sleep(0.02)


def parents():
    """All processes that run, with their parents."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if stat[0] != "Z":
                yield int(entry.name), int(stat[1])


@asynccontextmanager
async def serve_process(store, upstream, folder, **settings):
    """While `refold serve` runs over a store."""
    values = {f"REFOLD_SERVE__{name.upper()}": str(value) for name, value in settings.items()}
    own = {name: one for name, one in os.environ.items() if name != "XDG_CONFIG_HOME"}
    process = await start_serve(
        *("--port", "0", "--json", "--store", store, "--upstream", f"{upstream}/v1"),
        cwd=folder,
        # On a busy machine a store takes longer than it may in use.
        env={"REFOLD_SERVE__TIMES__STORE": "30", **own, **values, "HOME": str(folder)},
    )
    try:
        address = json.loads(await process.stdout.readline())["address"]
        yield Serving(process, address, store)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
