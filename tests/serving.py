"""A service that runs on loopback, with real sockets, for tests."""

import asyncio
import os
import signal
from contextlib import asynccontextmanager

import httpx2

from refold.service import server
from refold.service.app import application
from refold.service.service import Service
from refold.settings import Serve, load_settings
from refold.stores import MemoryStore


def settings_with(**serve):
    """The usual settings, with some of [serve] as told."""
    from dataclasses import replace  # noqa: PLC0415 - only here

    # On a busy machine a store takes longer than it may in use.
    times = {"store": 30, **serve.pop("times", {})}
    return replace(load_settings(), serve=Serve.model_validate({**serve, "times": times}))


def service_with(store=None, *, local=True, address="memory:", **serve):
    """A service over a store, with some of [serve] as told."""
    return Service(settings_with(**serve), store or MemoryStore(), address, local=local)


@asynccontextmanager
async def running(service, more=()):
    """Its address, while it runs as `refold serve` runs it; then it is told to stop."""
    sock = server.listen("127.0.0.1", 0)
    started = asyncio.Event()
    made = application(service, more)
    task = asyncio.create_task(server.serve(made, sock, started.set))
    waiting = asyncio.create_task(started.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        task.result()
    try:
        yield server.address_of(sock)
    finally:
        if not task.done() and not service.draining.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
        await task
        sock.close()


@asynccontextmanager
async def asking(service, more=(), **options):
    """A client of a running service."""
    async with (
        running(service, more) as address,
        httpx2.AsyncClient(base_url=address, timeout=20, **options) as client,
    ):
        yield client
