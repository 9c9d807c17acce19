"""`refold keys upstream`: the keys of providers that the service keeps."""

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from refold.cli.keyring import JsonOption, with_keyring
from refold.cli.options import STORE, StoreOption
from refold.cli.tables import aligned
from refold.log import DEFAULT_TENANT

if TYPE_CHECKING:
    from refold.service.keyring import Keyring
    from refold.service.vault import Vault

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
            {"tenant": one.tenant, "upstream": one.upstream, "since": _moment(one.at)}
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


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
