"""`refold serve` and `refold worker`."""

import asyncio
import json
import logging
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer
from pydantic import ValidationError

from refold.cli.left_out import print_left_out
from refold.cli.options import POSTGRES, STORE, ProfileChoice, StoreOption, store_at, where_is
from refold.cli.outcome import exit_on_error, require_extra, wrong_usage
from refold.errors import InvalidInput
from refold.service.metrics import export_to_prometheus

if TYPE_CHECKING:
    from refold.engine.dbos import Limits
    from refold.settings import Settings, UpstreamSettings


_MAX_PORT: Final = 65_535
MetricsOption = Annotated[
    str | None,
    typer.Option(
        "--metrics", metavar="HOST:PORT", help="Serve Prometheus metrics at this address."
    ),
]


@contextmanager
def metrics_at(where: str | None) -> Generator[str | None]:
    """Serve this process's metrics at HOST:PORT meanwhile; port 0 is any free one.

    Yields the address, or None without `where`. It sets OpenTelemetry's meter provider, which a
    process can do once: a provider that is already set stays.
    """
    if where is None:
        yield None
        return
    host, colon, digits = where.rpartition(":")
    with wrong_usage():
        if not (colon and host and digits.isdecimal() and int(digits) <= _MAX_PORT):
            raise InvalidInput(f"{where!r} is not HOST:PORT.", "Use one like 127.0.0.1:9464.")
    host, port = host.strip("[]"), int(digits)
    provider = export_to_prometheus()
    from prometheus_client import REGISTRY, start_http_server  # noqa: PLC0415 - optional

    try:
        server, thread = start_http_server(port, addr=host, registry=REGISTRY)
    except OSError as error:
        provider.shutdown()
        raise InvalidInput(
            f"Metrics cannot be served at {where}: {error.strerror}.", "Name another HOST:PORT."
        ) from error
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        provider.shutdown()
        server.shutdown()
        server.server_close()
        thread.join()


def serve(  # noqa: PLR0913 - an option each
    *,
    store: StoreOption = STORE,
    host: Annotated[
        str | None,
        typer.Option(
            "--host", metavar="ADDRESS", help="Listen on this address.", show_default="serve.host"
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=_MAX_PORT,
            help="Listen on this port; 0 is any free one.",
            show_default="serve.port",
        ),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            "--upstream",
            metavar="URL",
            help="Send all requests to this server, in any format: http://127.0.0.1:8080/v1.",
            show_default="serve.upstreams",
        ),
    ] = None,
    upstream_key: Annotated[
        str | None,
        typer.Option(
            "--upstream-key",
            metavar="NAME",
            help="With --upstream: the environment variable that has that server's key, `none` if "
            "it needs none, or `pass` for the client's own. With the first two, it also writes "
            "summaries.",
            show_default="pass",
        ),
    ] = None,
    worker: Annotated[
        bool,
        typer.Option("--worker/--no-worker", help="Also make folds here, for a store on a server."),
    ] = True,
    metrics: MetricsOption = None,
    fail_open: Annotated[
        bool | None,
        typer.Option(
            "--fail-open/--no-fail-open",
            help="While the store is unavailable, pass requests on unmanaged instead of refusing "
            "them.",
            show_default="serve.fail_open",
        ),
    ] = None,
    profile: ProfileChoice = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print where it listens as JSON, on one line.")
    ] = False,
) -> None:
    """Run a gateway to models, and an API to sessions, at one address.

    Clients for OpenAI and Anthropic only need its address as their base URL. If it listens on this
    machine only, no key is needed; to listen elsewhere, create one first: refold keys create. The
    settings under [serve] name the upstreams and the limits. On SIGTERM or Ctrl+C, it accepts no
    new requests and finishes those in progress.

    Example: refold serve --store sqlite:///refold.db --port 8790
    """
    with exit_on_error(), require_extra("serve"):
        from refold.settings import load_settings  # noqa: PLC0415 - slow

        settings = load_settings(profile)
        print_left_out(settings)
        changes: dict[str, object] = {} if fail_open is None else {"fail_open": fail_open}
        with wrong_usage():
            if upstream is not None:
                changes["upstreams"] = (_upstream(upstream, upstream_key),)
            elif upstream_key is not None:
                raise InvalidInput(
                    "--upstream-key is of a server that --upstream names.",
                    "Add --upstream http://127.0.0.1:8080/v1, or set `key` in serve.upstreams.",
                )
        settings = replace(settings, serve=settings.serve.model_copy(update=changes))
        host = host or settings.serve.host
        port = settings.serve.port if port is None else port
        with metrics_at(metrics):
            asyncio.run(
                _serve(settings, where_is(store), host, port, worker=worker, as_json=as_json)
            )


def _upstream(address: str, key: str | None) -> "UpstreamSettings":
    from refold.settings import UpstreamSettings  # noqa: PLC0415 - slow

    try:
        return UpstreamSettings(name="upstream", base_url=address, key=key or "pass")
    except ValidationError as error:
        if any("key" in each["loc"] for each in error.errors()):
            # What was given may be a key itself: it is not repeated.
            raise InvalidInput(
                "--upstream-key names no environment variable.",
                "Give the name of the variable that has the key, `none`, `stored` or `pass`.",
            ) from None
        raise InvalidInput(
            f"{address!r} is not the address of a server.",
            "Give it as --upstream http://127.0.0.1:8080/v1.",
        ) from error


async def _serve(  # noqa: PLR0913 - made in one place
    settings: "Settings", address: str, host: str, port: int, *, worker: bool, as_json: bool
) -> None:
    from refold.console.access import HOME, Access  # noqa: PLC0415 - optional
    from refold.console.app import add_console, open_address  # noqa: PLC0415 - optional
    from refold.service import server as service  # noqa: PLC0415 - optional
    from refold.service.app import app as application  # noqa: PLC0415 - optional
    from refold.service.keys import TENANT as SERVICE  # noqa: PLC0415 - optional

    service.log_to_standard_error(json_access_log=settings.serve.access_log == "json")
    service.raise_file_limit()
    sock = service.listen(host, port)
    try:
        keys = await service.check_keys(store_at(address, create=True), sock)
        local = service.is_local(sock)
        store = store_at(address, create=True, connect=settings.serve.times.store)
        app = application(settings, store=store, address=address, local=local, worker=worker)
        where = service.address_of(sock)
        access = Access(
            app.state.service,
            sessions=store.log(SERVICE),
            token_used=lambda: _offer_another(console()),
        )
        add_console(app, access)

        def console() -> str:
            return f"{where}{HOME}" if access.by_key else open_address(where, access.new_token())

        def on_start() -> None:
            if as_json:
                about = {"address": where, "keys": keys, "console": console()}
                typer.echo(json.dumps(about))
            else:
                typer.echo(_greeting(where, console(), keys=keys), err=True)
                if days := settings.profile.retention.days:
                    typer.echo(
                        f"Sessions of the profile {settings.profile.name} that nobody uses for "
                        f"{days} days are forgotten (retention.days).",
                        err=True,
                    )

        service.calm_garbage_collection()
        await service.serve(app, sock, on_start)
    finally:
        sock.close()


def _offer_another(console: str) -> None:
    typer.echo(f"The console was opened. For another browser: {console}", err=True)


def _greeting(where: str, console: str, *, keys: bool) -> str:
    needed = (
        "Every request needs a key (refold keys list)."
        if keys
        else "No key is needed on this machine (refold keys create makes one)."
    )
    # With keys, the address carries no token: say so, because without one it looks cut off.
    sign_in = " (sign in there with a key that may read)" if keys else ""
    return (
        f"Refold answers at {where}. {needed}\n"
        f"  export OPENAI_BASE_URL={where}/v1\n"
        f"  export ANTHROPIC_BASE_URL={where}\n"
        f"Console: {console}{sign_in}\n"
        f"API: {where}/api/v1/openapi.json. Stop with Ctrl+C."
    )


def worker(  # noqa: PLR0913 - an option each
    *,
    store: StoreOption = STORE,
    at_once: Annotated[
        int,
        typer.Option(
            "--at-once",
            metavar="N",
            min=1,
            help="Background folds per model at once, over all workers.",
        ),
    ] = 8,
    waiting: Annotated[
        int,
        typer.Option(
            "--waiting",
            metavar="N",
            min=1,
            help="Additional folds that a request waits for.",
        ),
    ] = 8,
    per_tenant: Annotated[
        int,
        typer.Option("--per-tenant", metavar="N", min=1, help="Maximum of either kind per tenant."),
    ] = 4,
    per_minute: Annotated[
        int | None,
        typer.Option(
            "--per-minute",
            metavar="N",
            min=2,
            help="Folds that each model starts per minute, over all workers.",
            show_default="no limit",
        ),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(
            "--patience",
            metavar="SECONDS",
            min=0,
            help="Seconds to let running folds finish on shutdown.",
        ),
    ] = 30.0,
    pool: Annotated[
        str, typer.Option("--pool", metavar="NAME", help="Make the folds of these engines.")
    ] = "default",
    metrics: MetricsOption = None,
    profile: ProfileChoice = None,
) -> None:
    """Make the folds that programs with a DbosEngine request, for all tenants.

    Start as many as you like, on any machine that reaches the database directly: if a worker dies,
    another one finishes its folds. The models that summarize need their keys here. On SIGTERM or
    Ctrl+C, a worker accepts no new folds, finishes its current ones, and leaves the rest to others.
    The limits apply to all workers together: give each the same.

    Example: refold worker --store postgresql://app@db/refold --per-minute 300
    """
    with exit_on_error(), require_extra("dbos"):
        address = where_is(store)
        with wrong_usage():
            if not address.startswith(POSTGRES):
                raise InvalidInput(
                    "Workers share a store in PostgreSQL; one in a file is folded where it is "
                    "used.",
                    "Name it: --store postgresql://user@host/database, or REFOLD_STORE.",
                )
        limits = _limits(at_once, waiting, per_tenant, per_minute)
        with metrics_at(metrics):
            asyncio.run(_work(address, limits, patience, pool, profile))


def _limits(at_once: int, waiting: int, per_tenant: int, per_minute: int | None) -> "Limits":
    from refold.engine.dbos import Bound, Bounds, Limits, Rate  # noqa: PLC0415 - optional

    def bound(folds: int) -> Bound:
        share = per_minute and max(1, round(per_minute * folds / (at_once + waiting)))
        return Bound(folds, min(per_tenant, folds), Rate(share, 60.0) if share else None)

    return Limits(Bounds(bound(waiting), bound(at_once)))


async def _work(
    address: str, limits: "Limits", patience: float, pool: str, profile: str | None
) -> None:
    from refold.engine.dbos import Worker  # noqa: PLC0415 - optional
    from refold.service.worker import worker_fold_maker  # noqa: PLC0415 - slow
    from refold.settings import load_settings  # noqa: PLC0415 - slow
    from refold.stores.postgres import PostgresStore  # noqa: PLC0415 - optional

    settings = load_settings(profile)
    print_left_out(settings)
    # While the database is away, the pool would log several lines a second; the sweeper logs one.
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_ in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_, stop.set)
    async with (
        PostgresStore(address, forget_journal=settings.profile.store.forget_journal) as store,
        worker_fold_maker(store, settings) as make,
        Worker(address, store.log, make, limits=limits, pool=pool, patience=patience) as worker,
    ):
        typer.echo(f"{worker.executor} takes folds.", err=True)
        await stop.wait()
        typer.echo("It takes no more, and waits for what it makes.", err=True)
