"""Folds made in one process by what another process says: frames between a worker and a test."""

import asyncio
import pickle
import socket
import struct
from contextlib import suppress
from itertools import count
from typing import Any

_SIZE = struct.Struct("!I")


class Wire:
    """Sends and takes whole values."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader = reader
        self._writer = writer

    def send(self, *value: Any):
        data = pickle.dumps(value)
        self._writer.write(_SIZE.pack(len(data)) + data)

    async def take(self) -> tuple[Any, ...] | None:
        """The next value; None when there are no more."""
        try:
            (size,) = _SIZE.unpack(await self._reader.readexactly(_SIZE.size))
            return pickle.loads(await self._reader.readexactly(size))  # noqa: S301 - our own
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def close(self):
        self._writer.close()


class Asked:
    """The test's side: runs its own `make` for a worker that asks."""

    def __init__(self, make, path):
        self._make = make
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._socket.settimeout(0)
        self._tasks: set[asyncio.Task] = set()
        self._wires: list[Wire] = []
        self._spawn(self._accept())

    async def close(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for wire in self._wires:
            wire.close()
        self._socket.close()

    def _spawn(self, work):
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self):
        loop = asyncio.get_running_loop()
        while True:
            taken, _ = await loop.sock_accept(self._socket)
            wire = Wire(*await asyncio.open_connection(sock=taken))
            self._wires.append(wire)
            self._spawn(self._serve(wire))

    async def _serve(self, wire):
        calls: dict[int, _Call] = {}
        try:
            while (said := await wire.take()) is not None:
                match said:
                    case "make", call, job:
                        calls[call] = _Call(self, wire, call, job)
                    case "cancel", call:
                        calls[call].cancel()
                    case "work", call, step:
                        calls[call].work(step)
                    case "stepped", call, step, good, value:
                        calls[call].stepped(step, good, value)
        finally:
            for call in calls.values():
                call.cancel()


class _Call:
    def __init__(self, asked: Asked, wire: Wire, call: int, job):
        self._asked = asked
        self._wire = wire
        self._call = call
        self._steps: dict[int, tuple[asyncio.Future, Any]] = {}
        self._working: set[asyncio.Task] = set()
        self._next = count()
        self._task = asked._spawn(self._make(job))

    def cancel(self):
        for task in (self._task, *self._working):
            task.cancel()

    async def _make(self, job):
        try:
            self._wire.send("made", self._call, "good", await self._asked._make(job, self))
        except BaseException as error:  # noqa: BLE001 - told to the worker
            self._wire.send("made", self._call, "bad", error)

    async def step(self, name, work):
        step = next(self._next)
        done = asyncio.get_running_loop().create_future()
        self._steps[step] = done, work
        self._wire.send("step", self._call, step, name)
        return await done

    def work(self, step):
        async def do():
            try:
                self._wire.send("worked", self._call, step, "good", await self._steps[step][1]())
            except BaseException as error:  # noqa: BLE001 - told to the worker
                self._wire.send("worked", self._call, step, "bad", error)

        task = self._asked._spawn(do())
        self._working.add(task)

    def stepped(self, step, good, value):
        done = self._steps[step][0]
        if not done.done():
            _settle(done, good, value)


class Asking:
    """The worker's side: a `make` that asks the test."""

    def __init__(self):
        self._wire: Wire | None = None
        self._next = count()
        self._calls: dict[int, tuple[asyncio.Future, Any, dict, set]] = {}
        self._task: asyncio.Task | None = None

    async def connect(self, path):
        self._wire = Wire(*await asyncio.open_unix_connection(path))
        self._task = asyncio.create_task(self._listen(self._wire))

    async def drop(self):
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    async def __call__(self, job, steps):
        assert self._wire is not None
        wire, call = self._wire, next(self._next)
        made = asyncio.get_running_loop().create_future()
        tasks: set[asyncio.Task] = set()
        self._calls[call] = made, steps, {}, tasks
        wire.send("make", call, job)
        try:
            return await asyncio.shield(made)
        except asyncio.CancelledError:
            if made.done():
                raise
            wire.send("cancel", call)
            with suppress(BaseException):
                return await made
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, wire):
        while (said := await wire.take()) is not None:
            match said:
                case "made", call, good, value:
                    made = self._calls.pop(call)[0]
                    if not made.done():
                        _settle(made, good, value)
                        made.exception()
                case "step", call, step, name:
                    tasks = self._calls[call][3]
                    tasks.add(asyncio.create_task(self._step(wire, call, step, name)))
                case "worked", call, step, good, value:
                    if call in self._calls:
                        worked = self._calls[call][2][step]
                        if not worked.done():
                            _settle(worked, good, value)

    async def _step(self, wire, call, step, name):
        _, steps, working, _ = self._calls[call]

        async def work():
            working[step] = asyncio.get_running_loop().create_future()
            wire.send("work", call, step)
            return await working[step]

        try:
            wire.send("stepped", call, step, "good", await steps.step(name, work))
        except BaseException as error:
            wire.send("stepped", call, step, "bad", _raised(error))
            if isinstance(error, asyncio.CancelledError):
                raise


def _settle(future, how, value):
    if how == "good":
        future.set_result(value)
    else:
        future.set_exception(_raised(value))


def _raised(error):
    """An error that a future takes."""
    return RuntimeError("cancelled") if isinstance(error, asyncio.CancelledError) else error
