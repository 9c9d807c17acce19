"""Every error Refold raises, as one tree.

    RefoldError
    ├── InvalidInput            what was given cannot be taken
    │   ├── InvalidEntry            an entry the log would not be able to honour later
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
    │   ├── Draining                the service is about to stop
    │   ├── SessionOwned            the session belongs to another key
    │   ├── OffloadLost             the process for large requests ended
    │   ├── UpstreamUnreachable     the server that has the model does not answer
    │   ├── NotPassedOn             not to be asked of an upstream with this key
    │   ├── NotLocal                who needs no key must ask from this machine, by its name
    │   └── MasterKeyWrong          upstream keys cannot be read, or none may be kept
    └── TransferError           a file to import that is not whole or not ours

Each error says what happened and what to do next, and carries a stable code for programs.
"""

from refold.errors.fold import (
    FoldCancelled,
    FoldError,
    FoldNotMade,
    FoldUnderWay,
    NothingToFold,
    NotRemembered,
)
from refold.errors.given import (
    InvalidEntry,
    InvalidInput,
    InvalidMessage,
    InvalidSetting,
    TransferError,
)
from refold.errors.log import (
    ArtifactNotFound,
    Conflict,
    HistoryDiffers,
    IdReused,
    LogError,
    MarkConflict,
    SessionBusy,
    SessionExists,
    SessionForgotten,
    SessionNotFound,
    WrittenByNewer,
)
from refold.errors.models import NoModel
from refold.errors.root import RefoldError
from refold.errors.service import (
    ApiKeyNotFound,
    Draining,
    HeadersTooLarge,
    InvalidEncoding,
    InvalidFraming,
    KeyNeeded,
    LimitReached,
    MasterKeyWrong,
    NotLocal,
    NotPassedOn,
    NoWebSockets,
    OffloadLost,
    QuotaUsedUp,
    RequestTooDeep,
    RequestTooLarge,
    RequestTooSlow,
    RoleNeeded,
    ServiceError,
    SessionOwned,
    UnsupportedEncoding,
    UpstreamUnreachable,
)
from refold.errors.store import (
    ErasureUnfinished,
    MigrationGap,
    NotAStore,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreNotFound,
    StoreOutdated,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
)
from refold.errors.view import (
    PromptTooLarge,
    UnknownFormat,
    Unrebuildable,
    ViewError,
    ViewTooLarge,
    WindowExceeded,
)

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
    "NoWebSockets",
    "NotAStore",
    "NotLocal",
    "NotPassedOn",
    "NotRemembered",
    "NothingToFold",
    "OffloadLost",
    "PromptTooLarge",
    "QuotaUsedUp",
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
