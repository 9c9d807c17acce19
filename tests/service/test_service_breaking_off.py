"""An upstream that breaks its answer off: the client's connection ends, and one line says why."""

import logging

import httpx2
import pytest
from gateway_world import CHAT, PATHS, body_of, served
from serving import asking, service_with

from refold.testing.upstream import Broken, Reply, ScriptedUpstream

BREAKS = Reply("One two three four.", breaks_after=4, pieces=6)


@pytest.mark.parametrize("path", PATHS)
async def test_an_upstream_that_breaks_off_is_told_in_one_line(path, monkeypatch):
    await _broken_off(path, body_of(path, "hi", stream=True), monkeypatch)


async def test_so_is_one_whose_answer_is_not_managed(monkeypatch):
    await _broken_off(CHAT, body_of(CHAT, "hi", stream=True, n=2), monkeypatch)


async def _broken_off(path, body, monkeypatch):
    async with served(ScriptedUpstream(lambda _: BREAKS)) as upstream:
        service = service_with(upstreams=[{"name": "up", "base_url": f"{upstream}/v1"}])
        async with asking(service) as client:
            lines = _lines(monkeypatch)
            with pytest.raises(httpx2.RemoteProtocolError):
                await client.post(path, json=body)
    (ours,) = [one for one in lines if not _is_the_upstreams(one)]
    assert (ours.name, ours.levelname, ours.exc_info) == ("refold.service", "WARNING", None)
    assert "RemoteProtocolError" in ours.getMessage()


def _lines(monkeypatch):
    """What is logged from now on: who serves has set the loggers as it likes before."""
    records = []
    for name in ("uvicorn.error", "refold.service"):
        handler, logger = logging.Handler(), logging.getLogger(name)
        handler.emit = records.append
        monkeypatch.setattr(logger, "handlers", [handler])
        monkeypatch.setattr(logger, "propagate", False)
        monkeypatch.setattr(logger, "level", logging.WARNING)
        monkeypatch.setattr(logger, "_cache", {})
    return records


def _is_the_upstreams(record):
    """Whether the server that plays the upstream says it, in this process too."""
    return bool(record.exc_info) and record.exc_info[0] is Broken
