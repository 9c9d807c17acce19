"""Workers in processes of their own, for tests: kept between tests, killed where a test asks."""

import asyncio
import multiprocessing
import os
import signal
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Thread
from uuid import uuid4

from dbos_making import Asked, Asking

from refold.engine.dbos import DbosEngine, Limits, Worker
from refold.engine.protocol import end_of
from refold.errors import InvalidInput
from refold.stores import open_store

LIMITS = Limits(polling=0.1)
NEVER = 3_600.0
LONG = 60.0
_NAMES = count(1)
_FORKS = multiprocessing.get_context("forkserver")


def preload():
    """Have processes made from one that has imported everything."""
    _FORKS.set_forkserver_preload(["refold.engine.dbos", "refold.stores.sqlite", "refold.session"])


class WorkerProcess:
    """A worker that makes what whoever it serves says."""

    def __init__(self, address):
        self.pool = f"w{next(_NAMES)}-{os.getpid()}-{uuid4().hex[:8]}"
        self._ours, theirs = _FORKS.Pipe()
        self._process = _FORKS.Process(target=_main, args=(address, self.pool, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def serve(self, path, store):
        self._ours.send(("serve", str(path), store))
        assert self._ours.poll(LONG), "the worker does not start"
        assert self._ours.recv() == "ready"

    def release(self):
        self._ours.send(("release",))

    def kill(self):
        with suppress(ProcessLookupError):
            os.kill(self._process.pid or 0, signal.SIGKILL)
        self._process.join()
        self._ours.close()


class Workers:
    """Some processes, made when they are needed."""

    def __init__(self, address, spare=4):
        self.address = address
        self._spare = spare
        self._free: list[WorkerProcess] = []
        self._all: set[WorkerProcess] = set()

    def lease(self):
        worker = self._free.pop() if self._free else WorkerProcess(self.address)
        self._all.add(worker)
        return worker

    def give_back(self, worker):
        if len(self._free) < self._spare:
            worker.release()
            self._free.append(worker)
        else:
            self.kill(worker)

    def kill(self, worker):
        worker.kill()
        self._all.discard(worker)

    def close(self):
        for worker in list(self._all):
            self.kill(worker)


class EngineWithWorker:
    """An engine, and a worker of its own, which makes what `make` says in the test's process.

    It has one from when it may need one: a process costs more than most tests.
    """

    def __init__(self, workers: Workers, log, make, store):
        self._workers = workers
        self._log = log
        self._make = make
        self._store = store
        self._worker: WorkerProcess | None = None
        self._asked: Asked | None = None
        self._engine: DbosEngine | None = None
        self._others: list[DbosEngine] = []
        self._closed = False

    async def start(self, job):
        return await self._with_worker().start(job)

    async def wait(self, session, fold, timeout=None):  # noqa: ASYNC109 - part of the protocol
        if self._closed or (self._engine is None and await end_of(self._log, session, fold)):
            timeout = 0.0  # nobody is needed
        return await self._with_worker(needed=timeout != 0.0).wait(session, fold, timeout)

    async def cancel(self, session, fold):
        return await self._with_worker(needed=False).cancel(session, fold)

    async def recover(self, session):
        return await self._with_worker().recover(session)

    def _with_worker(self, *, needed=True):
        if self._engine is not None:
            return self._engine
        if needed and self._closed:
            raise InvalidInput("The engine is closed.")
        if not needed:
            self._others.append(engine := self._new_engine("nobody"))
            return engine
        self._worker = worker = self._workers.lease()
        path = Path(tempfile.mkdtemp(prefix="refold-")) / "s"
        self._asked = Asked(self._make, path)
        worker.serve(path, self._store)
        self._engine = self._new_engine(worker.pool)
        return self._engine

    def _new_engine(self, pool):
        return DbosEngine(
            self._log,
            self._workers.address,
            limits=LIMITS,
            pool=pool,
            grace=0,
            look=0.1,
            leave=False,
        )

    async def close(self):
        self._closed = True
        for engine in (self._engine, *self._others):
            if engine is not None:
                await engine.close()
        if self._worker is not None:
            self._workers.give_back(self._worker)
            self._worker = None
        if self._asked is not None:
            await self._asked.close()

    async def die(self):
        """As both processes do when they are killed: nothing is given up."""
        if self._worker is not None:
            self._workers.kill(self._worker)
            self._worker = None
        if self._engine is not None:
            self._engine._to_cancel.clear()
        await self.close()


def _main(address, pool, commands):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_work(address, pool, commands))


async def _work(address, pool, commands):
    asking, stores = Asking(), []
    async with Worker(
        address,
        lambda tenant: stores[-1].log(tenant),  # noqa: PLW0108 - they change
        lambda _: asking,
        limits=LIMITS,
        pool=pool,
        grace=0,
        sweep=NEVER,
    ):
        async for command in _heard(commands):
            await asking.drop()
            for store in stores:
                await store.close()
            stores.clear()
            match command:
                case "serve", path, where:
                    store = open_store(where)
                    await store.open()
                    stores.append(store)
                    await asking.connect(path)
                    commands.send("ready")
                case _:
                    pass


async def _heard(commands):
    """What the test says, until it is gone."""
    loop, said = asyncio.get_running_loop(), asyncio.Queue()

    def listen():
        try:
            while True:
                command = commands.recv()
                loop.call_soon_threadsafe(said.put_nowait, command)
        except (EOFError, OSError):
            os._exit(0)

    Thread(target=listen, daemon=True).start()
    while True:
        yield await said.get()
