"""The keyring of a store, for commands."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from refold.cli.options import store_at, where_to_look
from refold.cli.outcome import explained, needing
from refold.errors import StoreNotFound

if TYPE_CHECKING:
    from refold.log import Store
    from refold.service.keyring import Keyring

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
    from refold.service.keyring import keyring_of  # noqa: PLC0415 - optional

    try:
        async with store_at(store, create=create) as opened:
            keyring = keyring_of(opened)
            await keyring.look()
            return await work(keyring, opened)
    except StoreNotFound as error:
        raise where_to_look(error) from error
