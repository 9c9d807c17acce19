"""`refold keys`: who may use the service, and the keys of providers that it keeps."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from refold.cli.options import STORE, StoreOption, store_at, where_to_look
from refold.cli.outcome import explained, needing
from refold.cli.output import aligned
from refold.errors import InvalidInput, StoreNotFound
from refold.log import DEFAULT_TENANT, Span, Store

if TYPE_CHECKING:
    from refold.service.keys import IssuedKey, Key, Keyring, Role
    from refold.service.vault import Vault


# The keyring of a store, for commands.

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
_Result = TypeVar("_Result")


def with_keyring(
    store: str, work: "Callable[[Keyring], Awaitable[_Result]]", *, create: bool = False
) -> _Result:
    """What the work comes to, on the keyring of a store."""
    return with_store_and_keyring(store, lambda keyring, _: work(keyring), create=create)


def with_store_and_keyring(
    store: str, work: "Callable[[Keyring, Store], Awaitable[_Result]]", *, create: bool = False
) -> _Result:
    """What the work comes to, on a store and its keyring."""
    with explained(), needing("serve"):
        return asyncio.run(_worked(store, work, create=create))
    raise AssertionError  # pragma: no cover - the command has ended by then


async def _worked(
    store: str, work: "Callable[[Keyring, Store], Awaitable[_Result]]", *, create: bool
) -> _Result:
    from refold.service.keys import keyring_of  # noqa: PLC0415 - optional

    try:
        async with store_at(store, create=create) as opened:
            keyring = keyring_of(opened)
            await keyring.refresh()
            return await work(keyring, opened)
    except StoreNotFound as error:
        raise where_to_look(error) from error


# `refold keys upstream`: the keys of providers that the service keeps.

upstream = typer.Typer(
    name="upstream",
    help="Keep the keys of providers, encrypted under REFOLD_MASTER_KEY.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
NameArgument = Annotated[
    str, typer.Argument(metavar="UPSTREAM", help="As serve.upstreams names it.")
]
KeyOwnerOption = Annotated[
    str, typer.Option("--tenant", metavar="NAME", help="Whose key it is; * is all tenants.")
]


@upstream.command("set")
def set_(
    name: NameArgument,
    *,
    tenant: KeyOwnerOption = DEFAULT_TENANT,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """Keep a provider's key, which is asked for, or read from standard input.

    Example: refold keys upstream set openai --tenant acme < key.txt
    """
    secret = _given()

    async def kept(keyring: "Keyring") -> None:
        await _vault(keyring).put(tenant, name, secret)

    with_keyring(store, kept, create=True)
    _tell(f"The key for {name} of tenant {tenant} is kept.", name, tenant, as_json=as_json)


@upstream.command("list")
def list_upstream(
    *,
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Only this tenant's.")
    ] = None,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """List for which upstreams keys are kept; the keys are not shown.

    Example: refold keys upstream list
    """

    async def listed(keyring: "Keyring") -> list[dict[str, str]]:
        return [
            {"tenant": one.tenant, "upstream": one.upstream, "since": _moment_upstream_keys(one.at)}
            for one in _vault(keyring).names(tenant)
        ]

    rows = with_keyring(store, listed)
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
    elif not rows:
        typer.echo("No key of a provider is kept.")
    else:
        typer.echo("\n".join(aligned([tuple(one.values()) for one in rows])))


@upstream.command("remove")
def remove(
    name: NameArgument,
    *,
    tenant: KeyOwnerOption = DEFAULT_TENANT,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """Forget a provider's key, for good.

    Example: refold keys upstream remove openai --tenant acme
    """

    async def removed(keyring: "Keyring") -> None:
        await _vault(keyring).remove(tenant, name)

    with_keyring(store, removed)
    _tell(f"The key for {name} of tenant {tenant} is gone.", name, tenant, as_json=as_json)


@upstream.command("reseal")
def reseal(*, store: StoreOption = STORE, as_json: JsonOption = False) -> None:
    """Encrypt every key anew that is not under the newest master key.

    Example: refold keys upstream reseal
    """

    async def resealed(keyring: "Keyring") -> int:
        return await _vault(keyring).reseal()

    done = with_keyring(store, resealed)
    typer.echo(json.dumps({"resealed": done}) if as_json else f"Encrypted anew: {done}.")


def _vault(keyring: "Keyring") -> "Vault":
    from refold.service.vault import Vault  # noqa: PLC0415 - optional

    return Vault(keyring)


def _given() -> str:
    """A provider's key, typed without being shown, or on standard input: never an argument."""
    if sys.stdin.isatty():
        return typer.prompt("The provider's key", hide_input=True, err=True).strip()
    return sys.stdin.readline().strip()


def _tell(words: str, name: str, tenant: str, *, as_json: bool) -> None:
    typer.echo(json.dumps({"upstream": name, "tenant": tenant}) if as_json else words)


def _moment_upstream_keys(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


keys = typer.Typer(
    name="keys",
    help="Say who may use the service, and keep the providers' keys that it uses.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
keys.add_typer(upstream)
TenantOption = Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose key it is.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The key's id.")]
_HOUR, _DAY = 60 * 60, 24 * 60 * 60 * 1_000


@keys.command("create")
def create(  # noqa: PLR0913 - an option each
    *,
    tenant: TenantOption = DEFAULT_TENANT,
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="NAME",
            help="What it is good for: use (the gateway), read, write, admin.",
            show_default="use, read, write",
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="A name, for people.")] = "",
    days: Annotated[
        float | None,
        typer.Option("--days", metavar="N", min=0.001, help="How long it is valid."),
    ] = None,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """Make a key. Its secret is shown this once, and kept nowhere.

    From the first key on, the service answers nobody without one.

    Example: refold keys create --tenant acme --role use --name "the support agent"
    """

    async def made(keyring: "Keyring") -> "IssuedKey":
        until = None if days is None else time.time_ns() // 1_000_000 + round(days * _DAY)
        return await keyring.create(tenant, _roles(role), name=name, until=until)

    done = with_keyring(store, made, create=True)
    _tell_made(done, as_json=as_json)


@keys.command("list")
def list_(
    *,
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Only this tenant's.")
    ] = None,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """List the keys: whose they are, what they are good for, and until when.

    Example: refold keys list --tenant acme
    """

    async def listed(keyring: "Keyring") -> "list[tuple[Key, str]]":
        return [(one, keyring.state(one)) for one in keyring.keys(tenant)]

    found = with_keyring(store, listed)
    if as_json:
        typer.echo(json.dumps([_row(*one) for one in found], ensure_ascii=False))
    elif not found:
        typer.echo("There is no key: make one with `refold keys create`.")
    else:
        typer.echo("\n".join(aligned([_cells(*one) for one in found])))


@keys.command("rotate")
def rotate(
    key: IdArgument,
    *,
    overlap: Annotated[
        float,
        typer.Option(
            "--overlap", metavar="HOURS", min=0, help="How long the old secret stays valid."
        ),
    ] = 24.0,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """Give a key a new secret, beside which the old one is valid for a while.

    Example: refold keys rotate 3f9c2ab81d04 --overlap 2
    """
    done = with_keyring(store, lambda keyring: keyring.rotate(key, overlap=overlap * _HOUR))
    _tell_made(done, as_json=as_json)


@keys.command("revoke")
def revoke(key: IdArgument, *, store: StoreOption = STORE, as_json: JsonOption = False) -> None:
    """End a key for good; services that run refuse it within a second.

    Example: refold keys revoke 3f9c2ab81d04
    """
    done = with_keyring(store, lambda keyring: keyring.revoke(key))
    if as_json:
        typer.echo(json.dumps(_row(done, "revoked"), ensure_ascii=False))
    else:
        typer.echo(f"Key {done.id} of tenant {done.tenant} is revoked.")


@keys.command("hand-over")
def hand_over(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's name.")],
    key: IdArgument,
    *,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """Let a session belong to another key of its tenant.

    Through the gateway, only the key that began a session may name it in `Refold-Session`. A new
    secret of that key (refold keys rotate) does not change that.

    Example: refold keys hand-over support-42 3f9c2ab81d04
    """

    async def handed_over(keyring: "Keyring", opened: "Store") -> "Key":
        tenant = keyring.key(key).tenant
        [first] = await opened.log(tenant).read(session, Span(1, 1), whole=False)
        return await keyring.hand_over(tenant, first.id, key)

    done = with_store_and_keyring(store, handed_over)
    if as_json:
        typer.echo(json.dumps({"session": session, "tenant": done.tenant, "key": done.id}))
    else:
        typer.echo(f"Session {session} of tenant {done.tenant} belongs to key {done.id}.")


@keys.command("quota")
def quota(
    *,
    tenant: Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose quota it is.")],
    tokens: Annotated[
        int | None,
        typer.Option("--tokens", metavar="N", min=0, help="Tokens per day; 0 is no limit."),
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option("--cost", metavar="DOLLARS", min=0, help="Dollars per day; 0 is no limit."),
    ] = None,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """Say how much a tenant may use in a day (UTC); what is left out is as the settings say.

    Example: refold keys quota --tenant acme --tokens 2000000 --cost 20
    """

    async def set_(keyring: "Keyring") -> None:
        from refold.service.keys import Quota  # noqa: PLC0415 - optional

        await keyring.set_quota(tenant, Quota(tokens, cost))

    with_keyring(store, set_, create=True)
    if as_json:
        typer.echo(json.dumps({"tenant": tenant, "tokens": tokens, "cost": cost}))
    else:
        typer.echo(f"Tenant {tenant} has another quota.")


@keys.command("master-key")
def master_key() -> None:
    """Print a new master key, under which providers' keys are encrypted.

    Give it to the service and to these commands in REFOLD_MASTER_KEY, and keep it apart from the
    store. To change it, put the new one in front of the old one, with a comma between, run
    `refold keys upstream reseal`, and then take the old one out.

    Example: export REFOLD_MASTER_KEY=$(refold keys master-key)
    """
    with explained(), needing("serve"):
        from refold.service.vault import new_master_key  # noqa: PLC0415 - optional

        typer.echo(new_master_key())


def _roles(given: list[str] | None) -> "list[Role]":
    from refold.service.keys import ROLES  # noqa: PLC0415 - optional

    wanted = given or ["use", "read", "write"]
    unknown = [one for one in wanted if one not in ROLES]
    if unknown:
        raise InvalidInput(f"There is no role {unknown[0]!r}.", f"They are: {', '.join(ROLES)}.")
    return [one for one in ROLES if one in wanted]


def _tell_made(made: "IssuedKey", *, as_json: bool) -> None:
    if as_json:
        row = _row(made.key, "active") | {"secret": made.secret}
        typer.echo(json.dumps(row, ensure_ascii=False))
        return
    typer.echo(made.secret)
    typer.echo(
        f"Key {made.key.id} of tenant {made.key.tenant}: keep the secret, it is not shown again.\n"
        "Clients send it as their API key, or as `Refold-Key` beside the provider's own.",
        err=True,
    )


def _row(key: "Key", state: str) -> dict[str, object]:
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "roles": sorted(key.roles),
        "state": state,
        "created": _moment(key.created_at),
        "until": _moment(key.until),
    }


def _cells(key: "Key", state: str) -> tuple[str, ...]:
    until = f"until {_moment(key.until)}" if key.until else ""
    return key.id, key.tenant, ", ".join(sorted(key.roles)), state, until, key.name


def _moment(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
