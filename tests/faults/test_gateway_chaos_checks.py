"""The agents and the checks of the gateways' chaos: what is as it must be passes, and no more."""

import asyncio
import json
from contextlib import AsyncExitStack, aclosing

from gateway_chaos_checks import Logged, line_of, names_of, objections_to_line, objections_to_next
from gateway_chaos_clients import Agent, new_client
from gateway_chaos_formats import MESSAGES, PATHS, body_of, returns, user
from gateway_chaos_upstream import SAYS, TALK, UNKNOWN, Models, upstream_of
from gateway_world import World, served

from refold.gateway.dialects import DIALECTS
from refold.log import Author, Message
from refold.testing.upstream import Got


async def talked(stack, seconds):
    """Agents that talked for a moment, their upstream's models, and the gateway's world."""
    models = Models(3)
    upstream = await stack.enter_async_context(served(upstream_of(models)))
    world = await stack.enter_async_context(aclosing(World(models.reply, address=upstream)))
    gateway = await stack.enter_async_context(served(world.app))
    client = await stack.enter_async_context(new_client())
    agents = [Agent(nth, PATHS[nth % 3], UNKNOWN, [gateway]) for nth in range(6)]
    stop = asyncio.Event()
    talking = [asyncio.create_task(one.live(client, stop)) for one in agents]
    await asyncio.sleep(seconds)
    stop.set()
    await asyncio.gather(*talking)
    await asyncio.gather(*(one.once_more(client) for one in agents))
    await world.quiet()
    return agents, models, world


async def logged_in(log):
    logged = Logged()
    for name in await names_of(log):
        logged.add(name, (await log.info(name)).format, await log.read(name))
    return logged


async def test_the_checks_see_what_is_missing_doubled_or_illegal():
    async with AsyncExitStack() as stack:
        agents, models, world = await talked(stack, 2.0)
        log, talks = world.log, [talk for one in agents for talk in one.talks]
        assert [what for one in agents for what in one.wrong] + models.wrong == []
        assert [await objections_to_line(log, talk) for talk in talks] == [None] * len(talks)
        logged = await logged_in(log)
        assert [*logged.wrong, *logged.objections_to_answers(talks)] == []
        assert await objections_to_next(log, talks[0].session, "openai-chat") == []

        first, second = talks[:2]
        answer = json.dumps(first.answers[-1][0]).encode()
        await log.append(first.session, [Author().draft(Message(answer))], expected=None)
        assert "differ" in (await objections_to_line(log, first) or "")
        twice = [*(await logged_in(log)).objections_to_answers(talks)]
        assert len(twice) == 1
        assert "2 times" in twice[0]
        second.answers = [(one, 0.0) for one, _ in second.answers]
        assert any("too late" in one for one in logged.objections_to_answers([second]))
        del second.history[0]
        assert "from 0 on" in (await objections_to_line(log, second) or "")
        assert len(await line_of(log, second.session)) > len(second.history)


async def test_models_see_illegal_requests_and_words_of_others():
    models = Models(1)
    own, strange = "u-1-0-0123abcd", "u-2-0-0123abcd"

    async def told(*history):
        before = len(models.wrong)
        raw = json.dumps(body_of(MESSAGES, UNKNOWN, [*history], stream=False)).encode()
        await models.reply(Got(MESSAGES, {TALK: "1-0", SAYS: own}, raw))
        return models.wrong[before:]

    assert await told(user(own)) == []
    (illegal,) = await told(user(own), *returns(MESSAGES, [("nobody-called", "x")]))
    assert "nobody-called" in illegal
    (silent,) = await told(user("something else"))
    assert "does not say" in silent
    (mixed,) = await told(user(f"{own} {strange}"))
    assert "2-0" in mixed


def test_each_format_is_read_as_it_is_sent():
    for path in PATHS:
        raw = json.dumps(body_of(path, UNKNOWN, [user("hi")], stream=True)).encode()
        asked = DIALECTS[path].read(raw)
        assert (asked.unmanaged, asked.stream, len(asked.messages)) == ("", True, 1)
