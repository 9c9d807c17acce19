"""`refold keys`: who may use the service, and the stored keys of providers."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from shlex import quote
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from refold.cli.options import STORE, JsonOption, StoreOption, store_at, where_to_look
from refold.cli.outcome import exit_on_error, require_extra, wrong_usage
from refold.cli.output import aligned
from refold.errors import InvalidInput, StoreNotFound
from refold.exports.moments import day_and_time
from refold.log import DEFAULT_TENANT, Span, Store

if TYPE_CHECKING:
    from refold.service.keys import IssuedKey, Key, Keyring, Quota, Role
    from refold.service.vault import Vault

_Result = TypeVar("_Result")
_HOUR, _DAY = 60 * 60, 24 * 60 * 60 * 1_000  # seconds, milliseconds

keys = typer.Typer(
    name="keys",
    help="Manage who may use the service, and store providers' keys.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
upstream = typer.Typer(
    name="upstream",
    help="Store providers' keys, encrypted with REFOLD_MASTER_KEY.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
keys.add_typer(upstream)
NameArgument = Annotated[
    str, typer.Argument(metavar="UPSTREAM", help="The upstream's name in serve.upstreams.")
]
KeyOwnerOption = Annotated[
    str,
    typer.Option(
        "--tenant", metavar="NAME", help="The tenant that owns the key; * is all tenants."
    ),
]
TenantOption = Annotated[
    str, typer.Option("--tenant", metavar="NAME", help="The tenant that owns the key.")
]
TenantFilter = Annotated[
    str | None, typer.Option("--tenant", metavar="NAME", help="Only this tenant's keys.")
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The key's id.")]


def _with_keyring(
    store: str, work: "Callable[[Keyring, Store], Awaitable[_Result]]", *, create: bool = False
) -> _Result:
    async def run() -> _Result:
        from refold.service.keys import keyring_of  # noqa: PLC0415 - optional

        try:
            async with store_at(store, create=create) as opened:
                keyring = keyring_of(opened)
                await keyring.refresh()
                return await work(keyring, opened)
        except StoreNotFound as error:
            raise where_to_look(error) from error

    with exit_on_error(), require_extra("serve"):
        return asyncio.run(run())
    raise AssertionError  # pragma: no cover - the command has ended by then


@upstream.command("set")
def set_(
    name: NameArgument,
    *,
    tenant: KeyOwnerOption = DEFAULT_TENANT,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """Store a provider's key; it is prompted for, or read from standard input.

    Example: refold keys upstream set openai --tenant acme < key.txt
    """
    # Typed without being shown, or on standard input: never an argument.
    if sys.stdin.isatty():
        secret = typer.prompt("The provider's key", hide_input=True, err=True).strip()
    else:
        secret = sys.stdin.readline().strip()
    _with_keyring(store, lambda ring, _: _vault(ring).put(tenant, name, secret), create=True)
    result = json.dumps({"upstream": name, "tenant": tenant})
    typer.echo(result if as_json else f"The key for {name} of tenant {tenant} is kept.")


@upstream.command("list")
def list_upstream(
    *, tenant: TenantFilter = None, store: StoreOption = STORE, as_json: JsonOption = False
) -> None:
    """List the upstreams that have a stored key; the keys are not shown.

    Example: refold keys upstream list
    """

    async def list_names(keyring: "Keyring", _: Store) -> list[dict[str, str]]:
        return [
            {"tenant": key.tenant, "upstream": key.upstream, "since": day_and_time(key.at)}
            for key in _vault(keyring).names(tenant)
        ]

    rows = _with_keyring(store, list_names)
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
    elif not rows:
        typer.echo("No key of a provider is kept.")
    else:
        typer.echo("\n".join(aligned([tuple(row.values()) for row in rows])))


@upstream.command("remove")
def remove(
    name: NameArgument,
    *,
    tenant: KeyOwnerOption = DEFAULT_TENANT,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """Delete a provider's key permanently.

    Example: refold keys upstream remove openai --tenant acme
    """
    _with_keyring(store, lambda keyring, _: _vault(keyring).remove(tenant, name))
    result = json.dumps({"upstream": name, "tenant": tenant})
    typer.echo(result if as_json else f"The key for {name} of tenant {tenant} is gone.")


@upstream.command("reseal")
def reseal(*, store: StoreOption = STORE, as_json: JsonOption = False) -> None:
    """Encrypt every stored key under the newest master key.

    Example: refold keys upstream reseal
    """
    count = _with_keyring(store, lambda keyring, _: _vault(keyring).reseal())
    typer.echo(json.dumps({"resealed": count}) if as_json else f"Encrypted anew: {count}.")


def _vault(keyring: "Keyring") -> "Vault":
    from refold.service.vault import Vault  # noqa: PLC0415 - optional

    return Vault(keyring)


@keys.command("create")
def create(  # noqa: PLR0913 - an option each
    *,
    tenant: TenantOption = DEFAULT_TENANT,
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="NAME",
            help="What the key may do: use (the gateway), read, write, admin.",
            show_default="use, read, write",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", metavar="TEXT", help="A name to recognize it by.")
    ] = "",
    days: Annotated[
        float | None,
        typer.Option("--days", metavar="N", min=0.001, help="How long it is valid."),
    ] = None,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """Create a key. Its secret is shown only once, and stored nowhere.

    Once there is a key, every request needs one.

    Example: refold keys create --tenant acme --role use --name "the support agent"
    """

    async def create_key(keyring: "Keyring", _: Store) -> "IssuedKey":
        until = None if days is None else time.time_ns() // 1_000_000 + round(days * _DAY)
        return await keyring.create(tenant, _roles(role), name=name, until=until)

    _print_secret(_with_keyring(store, create_key, create=True), as_json=as_json)


@keys.command("list")
def list_(
    *, tenant: TenantFilter = None, store: StoreOption = STORE, as_json: JsonOption = False
) -> None:
    """List the keys, with their tenants, roles and expiry.

    Example: refold keys list --tenant acme
    """

    async def list_keys(keyring: "Keyring", _: Store) -> "list[tuple[Key, str]]":
        return [(key, keyring.state(key)) for key in keyring.keys(tenant)]

    found = _with_keyring(store, list_keys)
    if as_json:
        typer.echo(json.dumps([_as_json(key, state) for key, state in found], ensure_ascii=False))
    elif not found:
        typer.echo("There is no key: make one with `refold keys create`.")
    else:
        typer.echo("\n".join(aligned([_cells(key, state) for key, state in found])))


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
    """Give a key a new secret; the old one stays valid for a while.

    Example: refold keys rotate 3f9c2ab81d04 --overlap 2
    """
    seconds = overlap * _HOUR
    rotated = _with_keyring(store, lambda keyring, _: keyring.rotate(key, overlap=seconds))
    _print_secret(rotated, as_json=as_json)


@keys.command("revoke")
def revoke(key: IdArgument, *, store: StoreOption = STORE, as_json: JsonOption = False) -> None:
    """Revoke a key permanently; running services refuse it within a second.

    Example: refold keys revoke 3f9c2ab81d04
    """
    revoked = _with_keyring(store, lambda keyring, _: keyring.revoke(key))
    if as_json:
        typer.echo(json.dumps(_as_json(revoked, "revoked"), ensure_ascii=False))
    else:
        typer.echo(f"Key {revoked.id} of tenant {revoked.tenant} is revoked.")


@keys.command("hand-over")
def hand_over(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's name.")],
    key: IdArgument,
    *,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """Hand a session over to another key of its tenant.

    Through the gateway, only the key that started a session may name it in `Refold-Session`. A new
    secret for that key (`refold keys rotate`) doesn't change that.

    Example: refold keys hand-over support-42 3f9c2ab81d04
    """

    async def change_owner(keyring: "Keyring", opened: Store) -> "Key":
        tenant = keyring.key(key).tenant
        [first] = await opened.log(tenant).read(session, Span(1, 1), whole=False)
        return await keyring.hand_over(tenant, first.id, key)

    owner = _with_keyring(store, change_owner)
    if as_json:
        typer.echo(json.dumps({"session": session, "tenant": owner.tenant, "key": owner.id}))
    else:
        typer.echo(f"Session {session} of tenant {owner.tenant} belongs to key {owner.id}.")


@keys.command("quota")
def quota(  # noqa: PLR0913 - its options
    *,
    tenant: Annotated[
        str, typer.Option("--tenant", metavar="NAME", help="The tenant that has the quota.")
    ],
    tokens: Annotated[
        int | None,
        typer.Option("--tokens", metavar="N", min=0, help="Tokens per day; 0 for no limit."),
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option("--cost", metavar="DOLLARS", min=0, help="Dollars per day; 0 for no limit."),
    ] = None,
    default: Annotated[
        bool,
        typer.Option(
            "--default", help="Drop the tenant's own limits; those in the settings apply."
        ),
    ] = False,
    store: StoreOption = STORE,
    as_json: JsonOption = False,
) -> None:
    """Show or set a tenant's daily quota (UTC).

    Only the limits that you name are changed. A tenant without limits of its own has those in the
    settings. You can set a tenant's quota before its first key.

    Example: refold keys quota --tenant acme --tokens 2000000 --cost 20
    """
    changes = default or tokens is not None or cost is not None

    async def change_quota(keyring: "Keyring", opened: Store) -> tuple["Quota", "Quota", bool]:
        from refold.service.keys import Quota  # noqa: PLC0415 - optional

        before = keyring.quota(tenant)
        known = tenant == DEFAULT_TENANT or before != Quota() or bool(keyring.keys(tenant))
        known = known or bool((await opened.log(tenant).sessions(limit=1)).sessions)
        old = Quota() if default else before
        new = Quota(old.tokens if tokens is None else tokens, old.cost if cost is None else cost)
        if changes:
            await keyring.set_quota(tenant, new)
        return before, new if changes else before, known

    before, after, known = _with_keyring(store, change_quota, create=changes)
    if not known:
        typer.echo(
            f"No key and no session is of the tenant {tenant!r} yet: check its name, or make a "
            f"key with `refold keys create --tenant {quote(tenant)}`.",
            err=True,
        )
    if as_json:
        typer.echo(json.dumps({"tenant": tenant, "tokens": after.tokens, "cost": after.cost}))
    else:
        was = f" (before: {_of_quota(before)})" if changes else ""
        typer.echo(f"Tenant {tenant}, a day: {_of_quota(after)}{was}.")


def _of_quota(quota: "Quota") -> str:
    tokens, cost = quota.tokens, quota.cost
    of_tokens = "no limit of tokens" if tokens == 0 else f"{tokens or 0:,} tokens"
    of_cost = "no limit of cost" if cost == 0 else f"${cost or 0:,.2f}"
    return ", ".join(
        [
            "tokens as in the settings" if tokens is None else of_tokens,
            "cost as in the settings" if cost is None else of_cost,
        ]
    )


@keys.command("master-key")
def master_key() -> None:
    """Print a new master key, which encrypts providers' keys.

    Set it as REFOLD_MASTER_KEY for the service and for these commands, and keep it apart from the
    store. To change it, put the new key in front of the old one, separated by a comma, run `refold
    keys upstream reseal`, then remove the old one.

    Example: export REFOLD_MASTER_KEY=$(refold keys master-key)
    """
    with exit_on_error(), require_extra("serve"):
        from refold.service.vault import new_master_key  # noqa: PLC0415 - optional

        typer.echo(new_master_key())


def _roles(names: list[str] | None) -> "list[Role]":
    from refold.service.keys import ROLES  # noqa: PLC0415 - optional

    names = names or ["use", "read", "write"]
    unknown = [name for name in names if name not in ROLES]
    with wrong_usage():
        if unknown:
            raise InvalidInput(f"There is no role {unknown[0]!r}.", f"Use {', '.join(ROLES)}.")
    return [role for role in ROLES if role in names]


def _print_secret(made: "IssuedKey", *, as_json: bool) -> None:
    key = made.key
    if as_json:
        row = _as_json(key, "active") | {"secret": made.secret}
        typer.echo(json.dumps(row, ensure_ascii=False))
        return
    typer.echo(made.secret)
    typer.echo(
        f"Key {key.id} of tenant {key.tenant}: keep the secret, it is not shown again.\n"
        "Clients send it as their API key, or as `Refold-Key` beside the provider's own.",
        err=True,
    )


def _as_json(key: "Key", state: str) -> dict[str, object]:
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "roles": sorted(key.roles),
        "state": state,
        "created": day_and_time(key.created_at),
        "until": None if key.until is None else day_and_time(key.until),
    }


def _cells(key: "Key", state: str) -> tuple[str, ...]:
    until = f"until {day_and_time(key.until)}" if key.until else ""
    return key.id, key.tenant, ", ".join(sorted(key.roles)), state, until, key.name
