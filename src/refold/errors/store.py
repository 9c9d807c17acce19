"""The file or server under the log."""

from refold.errors.root import RefoldError


class StoreError(RefoldError):
    """Something about the file or server under the log."""

    code = "store"


class StoreNotFound(StoreError):
    """There is no store at that address."""

    code = "store-not-found"
    usual_fix = "Check the address."


class NotAStore(StoreError):
    """The file is something else."""

    code = "not-a-store"
    usual_fix = "Point to a Refold store, or to a path where a new one may be made."


class StoreTooNew(StoreError):
    """The store's schema is newer than this Refold; nothing was changed."""

    code = "store-too-new"
    usual_fix = "Upgrade Refold; a store is never taken back to an older schema."


class StoreOutdated(StoreError):
    """The store's schema is older than this Refold needs, or was not made yet."""

    code = "store-outdated"
    usual_fix = "Run `refold store migrate` with the address, as the owner of the database."


class MigrationGap(StoreError):
    """The store's record of migrations does not match the ones shipped."""

    code = "migration-gap"
    usual_fix = "Restore the store from a backup, or reinstall the Refold that wrote it."


class StoreBusy(StoreError):
    """Another process holds the store for longer than we wait."""

    code = "store-busy"
    usual_fix = "Try again; if it stays so, look for a process that keeps the store locked."


class StoreFull(StoreError):
    """No room: what was acknowledged is safe, what is refused was not written."""

    code = "store-full"
    usual_fix = "Free some disk space and append again."


class StoreReadOnly(StoreError):
    """The store cannot be written from here."""

    code = "store-read-only"
    usual_fix = "Make the file and its folder writable for this user, or copy the store elsewhere."


class StoreCorrupt(StoreError):
    """The store's file is damaged."""

    code = "store-corrupt"
    usual_fix = (
        "Stop writing to it, keep a copy, and restore a backup; "
        "`refold export` still reads the sessions that are whole."
    )


class StoreFailed(StoreError):
    """The operating system refused to read or write the store."""

    code = "store-failed"
    usual_fix = "Check the disk and the permissions, then try again."


class StoreUnavailable(StoreFailed):
    """The store does not answer in time, or failed so often that it is not asked for a moment."""

    code = "store-unavailable"
    usual_fix = "Retry in a moment; if it stays so, check the store: `refold doctor`."

    def __init__(self, what: str, fix: str | None = None, *, retry_after: float = 1.0) -> None:
        self.retry_after = retry_after
        super().__init__(what, fix)


class StoreClosed(StoreError):
    """The store was closed, or not opened yet."""

    code = "store-closed"
    usual_fix = "Use the store inside `async with open_store(…) as store:`."


class ErasureUnfinished(StoreError):
    """Forgotten entries can no longer be read, but their bytes may still lie in the file."""

    code = "erasure-unfinished"
    usual_fix = "Close the other readers, make room if the disk is full, and open the store again."
