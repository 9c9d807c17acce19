"""The same asked twice at once: the second answer is kept in a branch, and found there."""

import asyncio
import json

import pytest
from gateway_world import PATHS, World, body_of, text_of

from refold.recall.text import rebuilt
from refold.testing.upstream import Broken, Reply


class Twice:
    """A conversation that is gone on with twice in the same words, before either is answered."""

    def __init__(self, path, *, stream, first=None):
        self.path, self.stream = path, stream
        self.let = [asyncio.Event(), asyncio.Event()]
        self.replies = [first or Reply("The first answer."), Reply("The second answer.")]
        self.world = World(self._reply)

    async def _reply(self, _):
        nth = len(self.world.upstream.got) - 2
        if not 0 <= nth < 2:
            return Reply("Hello there.")
        await self.let[nth].wait()
        return self.replies[nth]

    async def ask(self, *more):
        return await self.world.ask(
            self.path, body_of(self.path, "hi", "Hello there.", "more", *more, stream=self.stream)
        )

    async def begin(self):
        """Ask twice; the two tasks, of which neither is answered yet."""
        await self.world.ask(self.path, body_of(self.path, "hi"))
        asking = []
        for nth in range(2):
            asking.append(asyncio.create_task(self.ask()))
            async with asyncio.timeout(60):
                while len(self.world.upstream.got) < nth + 2:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0)
        return asking

    async def end(self, nth, task):
        """Let one be answered."""
        self.let[nth].set()
        try:
            return await task
        finally:
            await self.world.quiet()

    async def said(self, answer):
        return json.dumps(await self.world.said(answer.headers["refold-session"]))


@pytest.fixture
async def twice():
    made = []

    def make(path, **more):
        made.append(Twice(path, **more))
        return made[-1]

    yield make
    for one in made:
        await one.world.aclose()


@pytest.mark.parametrize("path", PATHS)
async def test_a_whole_answer_names_the_session_that_has_it(twice, path):
    two = twice(path, stream=False)
    tasks = await two.begin()
    first, second = [await two.end(nth, task) for nth, task in enumerate(tasks)]
    assert text_of(path, second.json()) == "The second answer."
    assert "The first answer." in await two.said(first)
    assert "The second answer." in await two.said(second)
    session, seq = second.headers["refold-request"].rsplit(":", 1)
    sent = await rebuilt(two.world.log, session, int(seq))
    assert json.loads(sent[-1])["content"] == "more"


@pytest.mark.parametrize("path", PATHS)
async def test_who_goes_on_from_a_streamed_answer_is_told_the_session_that_has_it(twice, path):
    two = twice(path, stream=True)
    tasks = await two.begin()
    first, second = [await two.end(nth, task) for nth, task in enumerate(tasks)]
    # The headers were sent before anybody could know that the first would be first.
    assert second.headers["refold-session"] == first.headers["refold-session"]
    on = await two.ask("The second answer.", "and on")
    assert on.headers["refold-session"] != first.headers["refold-session"]
    assert "The first answer." not in await two.said(on)
    assert "The second answer." in await two.said(on)
    also = await two.ask("The first answer.", "and on")
    assert also.headers["refold-session"] == first.headers["refold-session"]
    assert len(await two.world.sessions()) == 2


@pytest.mark.parametrize("path", PATHS)
async def test_so_is_who_retried_while_an_interrupted_answer_was_logged(twice, path):
    broken = Reply("The first answer.", pieces=6, breaks_after=4)
    two = twice(path, stream=True, first=broken)
    tasks = await two.begin()
    with pytest.raises(Broken):
        await two.end(0, tasks[0])
    second = await two.end(1, tasks[1])
    assert second.status_code == 200
    on = await two.ask("The second answer.", "and on")
    assert "The second answer." in await two.said(on)
    again = await two.ask("The second answer.", "and on", "Hello there.", "more yet")
    assert again.headers["refold-session"] == on.headers["refold-session"]
    assert len(await two.world.sessions()) == 2
