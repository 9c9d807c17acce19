"""Every error Refold raises, as one tree.

    RefoldError
    ├── InvalidInput            what was given cannot be taken
    │   ├── InvalidEntry            an entry the log would not be able to honor later
    │   ├── InvalidMessage          a payload that is no message of its format
    │   └── InvalidSetting          a setting with a value it cannot have
    ├── LogError                the log stands, but not as the caller thought
    │   ├── SessionNotFound
    │   ├── SessionExists
    │   ├── SessionForgotten
    │   ├── SessionBusy             another run of the session has not ended
    │   ├── HistoryDiffers          a message history that does not continue the session
    │   ├── Conflict                the session's head is elsewhere
    │   │   └── MarkConflict            its newest mark is
    │   ├── IdReused                one id, two contents
    │   ├── ArtifactNotFound
    │   └── WrittenByNewer          a newer Refold wrote what this one cannot read
    ├── StoreError              the file or server under the log
    │   ├── StoreNotFound
    │   ├── NotAStore
    │   ├── StoreTooNew
    │   ├── StoreOutdated           its schema is older than this Refold, or not there yet
    │   ├── MigrationGap
    │   ├── StoreBusy
    │   ├── StoreFull
    │   ├── StoreReadOnly
    │   ├── StoreCorrupt
    │   ├── StoreFailed
    │   │   └── StoreUnavailable        it does not answer within its deadline
    │   ├── StoreClosed
    │   └── ErasureUnfinished
    ├── ViewError               what the model would see
    │   ├── ViewTooLarge            what must be kept alone exceeds the limit
    │   │   └── PromptTooLarge          the latest prompt alone does
    │   ├── WindowExceeded          the provider refused it, however little was sent
    │   ├── UnknownFormat           no wire for the session's format
    │   └── Unrebuildable           a request record whose sources were forgotten or changed
    ├── FoldError               a fold that was asked for and not made
    │   ├── NothingToFold
    │   ├── FoldUnderWay            one at a time for each session
    │   ├── FoldCancelled
    │   └── FoldNotMade             it was begun and failed; nothing changed
    ├── NoModel                 nothing to talk with
    ├── NotRemembered           a note that memory could not keep
    ├── ServiceError            what the service does not do for who asks, or not now
    │   ├── KeyNeeded               no key, or none that is valid
    │   ├── RoleNeeded              the key's roles do not include it
    │   ├── ApiKeyNotFound          no key of that id
    │   ├── LimitReached            too much at once, or in a minute
    │   ├── QuotaUsedUp             too much in a day
    │   ├── RequestTooLarge
    │   ├── RequestTooSlow
    │   ├── HeadersTooLarge         more before the body than the service takes
    │   ├── RequestTooDeep          JSON within JSON beyond measure
    │   ├── TooManySteps            a turn that has taken as many steps as it may
    │   ├── Draining                the service is about to stop
    │   ├── SessionOwned            the session belongs to another key
    │   ├── OffloadLost             the process for large requests ended
    │   ├── UpstreamUnreachable     the server that has the model does not answer
    │   ├── NoProviderKey           the upstream takes the client's own key, and none came
    │   ├── NotPassedOn             not to be asked of an upstream with this key
    │   ├── ReferenceUnknown        an id of an answer that is nobody's here
    │   ├── NotLocal                who needs no key must ask from this machine, by its name
    │   └── MasterKeyWrong          upstream keys cannot be read, or none may be kept
    └── TransferError           a file to import that is not whole or not ours

Each error says what happened and what to do next, and carries a stable code for programs.
"""

from typing import ClassVar

__all__ = [
    "ApiKeyNotFound",
    "ArtifactNotFound",
    "Conflict",
    "Draining",
    "ErasureUnfinished",
    "FoldCancelled",
    "FoldError",
    "FoldNotMade",
    "FoldUnderWay",
    "HeadersTooLarge",
    "HistoryDiffers",
    "IdReused",
    "InvalidEncoding",
    "InvalidEntry",
    "InvalidFraming",
    "InvalidInput",
    "InvalidMessage",
    "InvalidSetting",
    "KeyNeeded",
    "LimitReached",
    "LogError",
    "MarkConflict",
    "MasterKeyWrong",
    "MigrationGap",
    "NoModel",
    "NoProviderKey",
    "NoWebSockets",
    "NotAStore",
    "NotLocal",
    "NotPassedOn",
    "NotRemembered",
    "NothingToFold",
    "OffloadLost",
    "PromptTooLarge",
    "QuotaUsedUp",
    "ReferenceUnknown",
    "RefoldError",
    "RequestTooDeep",
    "RequestTooLarge",
    "RequestTooSlow",
    "RoleNeeded",
    "ServiceError",
    "SessionBusy",
    "SessionExists",
    "SessionForgotten",
    "SessionNotFound",
    "SessionOwned",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StoreNotFound",
    "StoreOutdated",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnavailable",
    "TooManySteps",
    "TransferError",
    "UnknownFormat",
    "Unrebuildable",
    "UnsupportedEncoding",
    "UpstreamUnreachable",
    "ViewError",
    "ViewTooLarge",
    "WindowExceeded",
    "WrittenByNewer",
]


class RefoldError(Exception):
    """The root: `what` happened, the `fix` to try next, and a stable `code`."""

    code: ClassVar[str] = "refold"
    usual_fix: ClassVar[str] = "Please report this with the text above."

    def __init__(self, what: str, fix: str | None = None) -> None:
        self.what = what
        self.fix = fix or self.usual_fix
        super().__init__(f"{self.what} {self.fix}")


class FoldError(RefoldError):
    """A fold that was asked for and not made; the view is as it was."""

    code = "fold"


class NothingToFold(FoldError):
    """There is too little to fold yet, or all of it must stay."""

    code = "nothing-to-fold"
    usual_fix = "Continue; the context has room."


class FoldUnderWay(FoldError):
    """Another fold of the session is being made."""

    code = "fold-under-way"
    usual_fix = "Wait for it to end, or cancel it, then try again."


class FoldCancelled(FoldError):
    """The fold was canceled."""

    code = "fold-cancelled"
    usual_fix = "Nothing changed. Request it again when you want it."


class FoldNotMade(FoldError):
    """The fold was started and could not be finished."""

    code = "fold-not-made"
    usual_fix = "Nothing changed. Try again, or fold without a model."


class NotRemembered(RefoldError):
    """A note could not be kept, so what it tells of does not leave the view by a fold."""

    code = "not-remembered"
    usual_fix = (
        "Make the folder of memory, and the files in it, writable for this user. "
        "The log keeps everything meanwhile."
    )


class InvalidInput(RefoldError):
    """The input is not valid, whatever the state of the log."""

    code = "invalid-input"
    usual_fix = "Correct the value and call again."


class InvalidEntry(InvalidInput):
    """An entry that the log would not be able to honor later."""

    code = "invalid-entry"
    usual_fix = "Correct the entry and append it again."


class InvalidMessage(InvalidInput):
    """A payload that is not a message in its session's format."""

    code = "invalid-message"
    usual_fix = "Append messages in the format that the session was opened with."


class InvalidSetting(InvalidInput):
    """The setting is unknown, or its value is not valid."""

    code = "invalid-setting"
    usual_fix = "Correct the setting; `refold config` lists them all."


class TransferError(RefoldError):
    """The file to import is incomplete, or not an export of Refold."""

    code = "transfer"
    usual_fix = "Export the session again and import the new file."


class LogError(RefoldError):
    """The log is not in the state that the caller expected."""

    code = "log"


class SessionNotFound(LogError):
    """No session of that name."""

    code = "session-not-found"
    usual_fix = (
        "Check the name: `refold sessions` lists the sessions; a first message starts a new one."
    )


class SessionExists(LogError):
    """A session with that name exists already."""

    code = "session-exists"
    usual_fix = "Choose another session name."


class SessionForgotten(LogError):
    """The session was forgotten: its entries are gone for good."""

    code = "session-forgotten"
    usual_fix = "It can't be restored. A first message starts a new session under the same name."


class SessionBusy(LogError):
    """Another run of the session is under way, and took longer than we wait."""

    code = "session-busy"
    usual_fix = "Start it again when that run has ended, or fork the session to run both at once."


class HistoryDiffers(LogError):
    """A message history was given that does not continue what the session holds."""

    code = "history-differs"
    usual_fix = (
        "Leave `message_history` out, and the session is read from the store; "
        "or pass another `conversation_id`, to start a new session with that history."
    )


class Conflict(LogError):
    """Another writer was first: the head is not where the caller expected it."""

    code = "conflict"
    usual_fix = "Read what was appended since, then append again at the new head."
    _of: ClassVar = "head"

    def __init__(self, session: str, *, expected: int, found: int) -> None:
        self.session = session
        self.expected = expected
        self.found = found
        super().__init__(f"Session {session!r} has its {self._of} at {found}, not at {expected}.")


class MarkConflict(Conflict):
    """Another writer was first: the newest mark is not on the entry that the caller expected."""

    code = "mark-conflict"
    usual_fix = "Find the session's marks again, then append after the newest of them."
    _of = "newest mark"


class IdReused(LogError):
    """The same entry id came with other content, or in another order."""

    code = "id-reused"
    usual_fix = "Give each new entry an id of its own; repeat an append only with the same content."


class ArtifactNotFound(LogError):
    """No artifact under that hash: never stored here, or forgotten since."""

    code = "artifact-not-found"
    usual_fix = "Check the hash; an artifact is deleted with the last entry that refers to it."


class WrittenByNewer(LogError):
    """A newer Refold wrote what this one cannot read."""

    code = "written-by-newer"
    usual_fix = "Upgrade Refold in this process."


class NoModel(RefoldError):
    """There is no model to talk with: none was named, or the one named cannot be reached."""

    code = "no-model"
    usual_fix = (
        "Set a provider's key, such as ANTHROPIC_API_KEY or OPENAI_API_KEY; "
        "or start a local server and add `-m local --base-url http://127.0.0.1:8080/v1`; "
        "or see how it looks without any: `refold demo`."
    )


class ServiceError(RefoldError):
    """The service refuses the request, or can't answer it now."""

    code = "service"


class KeyNeeded(ServiceError):
    """No key came with the request, or none that is valid."""

    code = "key-needed"
    usual_fix = (
        "Send a key of this service as `Authorization: Bearer rfk_…`, or as `Refold-Key` beside "
        "the provider's own; `refold keys create` makes one."
    )


class RoleNeeded(ServiceError):
    """The key is valid, but its roles do not include this."""

    code = "role-needed"
    usual_fix = "Use a key with that role; `refold keys create --role NAME` makes one."


class SessionOwned(ServiceError):
    """The session belongs to the key that began it, or to which it was handed over."""

    code = "session-owned"
    usual_fix = (
        "Name another session in `Refold-Session`, or have an administrator hand this one over: "
        "`refold keys hand-over SESSION ID`."
    )


class ApiKeyNotFound(ServiceError):
    """No key of that id, or of that upstream."""

    code = "key-not-found"
    usual_fix = "List the keys: `refold keys list`."


class LimitReached(ServiceError):
    """Too much at once, or in a minute; `retry_after` says in how many seconds to ask again."""

    code = "limit-reached"
    usual_fix = "Retry later: `Retry-After` has the number of seconds."

    def __init__(self, what: str, retry_after: float, fix: str | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(what, fix)


class QuotaUsedUp(LimitReached):
    """Too much in a day."""

    code = "quota-used-up"
    usual_fix = "Retry tomorrow (UTC), or have the quota raised."


class RequestTooLarge(ServiceError):
    """The body is larger than the service takes."""

    code = "request-too-large"
    usual_fix = "Send less, or have `serve.sizes` raised."


class HeadersTooLarge(ServiceError):
    """What comes before the body is larger than the service takes."""

    code = "headers-too-large"
    usual_fix = "Send fewer or shorter headers, or have `serve.sizes.headers` raised."


class RequestTooSlow(ServiceError):
    """The body did not come in time."""

    code = "request-too-slow"
    usual_fix = "Send it again, over a faster connection."


class RequestTooDeep(ServiceError):
    """The body is nested too deeply."""

    code = "request-too-deep"
    usual_fix = "Send it with less nesting."


class UnsupportedEncoding(ServiceError):
    """The body is compressed in a way that the service does not read."""

    code = "unsupported-encoding"
    usual_fix = "Send it uncompressed, or with one Content-Encoding: zstd, gzip or deflate."


class InvalidEncoding(ServiceError):
    """The body is not compressed as its Content-Encoding says."""

    code = "invalid-encoding"
    usual_fix = "Check how the client compresses it, or send it uncompressed."


class InvalidFraming(ServiceError):
    """The headers disagree on where the body ends."""

    code = "invalid-framing"
    usual_fix = "Send either Content-Length or Transfer-Encoding, over HTTP/1.1."


class NoWebSockets(ServiceError):
    """The client asked for a WebSocket."""

    code = "no-websockets"
    usual_fix = "Send the request as a POST over HTTP; answers can be streamed."


class TooManySteps(ServiceError):
    """The agent's turn has taken as many steps as the settings allow."""

    code = "too-many-steps"
    usual_fix = (
        "Send a message, such as `continue`, to start another turn. The service's operator sets "
        "the limit with `max_steps`; 0 for no limit."
    )


class Draining(ServiceError):
    """The service is about to stop."""

    code = "draining"
    usual_fix = "Retry in a moment: another process will answer."


class OffloadLost(ServiceError):
    """The process that answers large requests ended, or could not be started."""

    code = "offload-lost"
    usual_fix = "Send the request again: the process restarts automatically."


class UpstreamUnreachable(ServiceError):
    """The model's server does not answer, or closed the connection."""

    code = "upstream-unreachable"
    usual_fix = "Retry; if it keeps failing, the service's operator should check `serve.upstreams`."


class NotPassedOn(ServiceError):
    """The request would use the upstream's own key, and is not for a model's answer."""

    code = "not-passed-on"
    usual_fix = (
        "Use a key of your own, or have the service's operator add it to `paths` of the "
        "upstream in `serve.upstreams`."
    )


class ReferenceUnknown(ServiceError):
    """The request continues from an id that the gateway did not give to this key.

    The provider keeps answers under one key for several tenants: the id may be another's.
    """

    code = "reference-unknown"
    usual_fix = (
        "Send the whole conversation, without the id. The gateway then knows each answer by its id."
    )


class NoProviderKey(ServiceError):
    """The upstream needs the client's own provider key, and only a key of the service came."""

    code = "no-provider-key"
    usual_fix = "Send the provider's key as usual, and the service's own in `Refold-Key`."


class NotLocal(ServiceError):
    """Without keys, only programs on this machine are answered, and no web page."""

    code = "not-local"
    usual_fix = "Create a key with `refold keys create`, and send it with the request."


class MasterKeyWrong(ServiceError):
    """REFOLD_MASTER_KEY is missing, invalid, or not the one that was used."""

    code = "master-key"
    usual_fix = (
        "Set REFOLD_MASTER_KEY to the key that was used to store them; `refold keys master-key` "
        "prints a new one, for a service without stored keys."
    )


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
    usual_fix = "Name a Refold store, or a path where a new one can be created."


class StoreTooNew(StoreError):
    """The store's schema is newer than this Refold; nothing was changed."""

    code = "store-too-new"
    usual_fix = "Upgrade Refold; a store is never downgraded to an older schema."


class StoreOutdated(StoreError):
    """The store's schema is older than this Refold needs, or does not exist yet."""

    code = "store-outdated"
    usual_fix = "Run `refold store migrate` with the address, as the owner of the database."


class MigrationGap(StoreError):
    """The store's record of migrations does not match the ones shipped."""

    code = "migration-gap"
    usual_fix = "Restore the store from a backup, or reinstall the Refold that wrote it."


class StoreBusy(StoreError):
    """Another process has kept the store locked for too long."""

    code = "store-busy"
    usual_fix = "Try again; if it keeps failing, look for a process that keeps the store locked."


class StoreFull(StoreError):
    """The disk is full. What was acknowledged is safe; the refused entries were not written."""

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
    """The store does not answer in time, or has failed so often that requests to it pause."""

    code = "store-unavailable"
    usual_fix = "Retry in a moment; if it keeps failing, check the store: `refold doctor`."

    def __init__(self, what: str, fix: str | None = None, *, retry_after: float = 1.0) -> None:
        self.retry_after = retry_after
        super().__init__(what, fix)


class StoreClosed(StoreError):
    """The store was closed, or not opened yet."""

    code = "store-closed"
    usual_fix = "Use the store inside `async with open_store(…) as store:`."


class ErasureUnfinished(StoreError):
    """Forgotten entries can no longer be read, but their bytes may still be in the file."""

    code = "erasure-unfinished"
    usual_fix = "Close the other readers, make room if the disk is full, and open the store again."


class ViewError(RefoldError):
    """Something about what the model would see."""

    code = "view"


class ViewTooLarge(ViewError):
    """What must be sent already exceeds the limit, without anything that could be left out."""

    code = "view-too-large"
    usual_fix = (
        "Shorten the instructions, the tool definitions or the prompt, unpin something, "
        "or use a model with a larger window."
    )

    def __init__(self, *, kept: int, limit: int, what: str = "") -> None:
        self.kept = kept
        self.limit = limit
        super().__init__(
            what
            or f"System content, tools, pins, summaries and the latest prompt alone take {kept:,} "
            f"tokens, and the limit is {limit:,}."
        )


class PromptTooLarge(ViewTooLarge):
    """The latest prompt alone exceeds the limit. The log has it; later requests leave it out."""

    code = "prompt-too-large"
    usual_fix = (
        "Send the next prompt: the long one stays in the log and is left out of the context. For "
        "the model to read it, put it into a file that a tool can read, send it in parts, or use "
        "a model with a larger window."
    )

    def __init__(self, *, seq: int, tokens: int, kept: int, limit: int) -> None:
        self.seq = seq
        self.tokens = tokens
        what = (
            f"The prompt is too long: it takes {tokens:,} tokens, and a request holds at most "
            f"{limit:,}. It was not sent. The log keeps it as entry {seq}."
        )
        super().__init__(kept=kept, limit=limit, what=what)


class WindowExceeded(ViewError):
    """The provider refused the request for its length, however little was sent."""

    code = "window-exceeded"
    usual_fix = (
        "Set the model's window (`models` in the settings), shorten the "
        "instructions, the tool definitions or the prompt, or use a model with a larger window. "
        "Everything that was said is kept."
    )


class UnknownFormat(ViewError):
    """No wire describes the session's message format."""

    code = "unknown-format"
    usual_fix = "Use one of the formats that `refold.wire` names, or write a wire for it."


class Unrebuildable(ViewError):
    """The request cannot be rebuilt: its sources were forgotten, or have changed."""

    code = "unrebuildable"
    usual_fix = "It can't be restored; the record still has its time, its plan and its model."
