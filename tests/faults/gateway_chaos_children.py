"""What the processes of the gateways' chaos test do. See `nursery`."""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from gateway_chaos_upstream import Models, upstream_of
from nursery import Nursery, serve_tests

import refold.engine.dbos
import refold.models.summarizer
import refold.service.app  # noqa: F401 - the commands would import these in each process
from refold.cli.serve import serve, worker

Report = Callable[[Any], None]


def gateway(report: Report, port: int, works: bool, **world: Any) -> None:  # noqa: ARG001, FBT001
    """`refold serve`, until it is killed."""
    address = _prepared(**world)
    serve(
        store=address,
        host="127.0.0.1",
        port=port,
        worker=works,
        metrics=None,
        profile=None,
        as_json=True,
    )


def works(report: Report, **world: Any) -> None:  # noqa: ARG001 - whoever is a child may
    """`refold worker`, until it is killed."""
    address = _prepared(**world)
    worker(
        store=address,
        at_once=8,
        waiting=8,
        per_tenant=8,
        per_minute=None,
        patience=30.0,
        pool="default",
        metrics=None,
        profile=None,
    )


def models(report: Report, port: int, seed: int) -> None:
    """The upstream, until it is killed."""
    app = upstream_of(Models(seed))
    config = uvicorn.Config(
        app, port=port, log_level="critical", lifespan="off", ws="none", backlog=1_024
    )
    report("answers")
    asyncio.run(uvicorn.Server(config).serve())


def _prepared(address: str, folder: str, name: str, variables: dict[str, str]) -> str:
    """As a process of its own that was started in an empty folder."""
    os.environ.update(variables)
    os.chdir(folder)
    written = os.open(f"{name}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(written, 1)
    os.dup2(written, 2)
    return address


class GatewayNursery(Nursery):
    """Starts gateways, workers and upstreams."""

    def __init__(self):
        super().__init__(__file__, strict=False)


if __name__ == "__main__":
    serve_tests(sys.modules[__name__])
