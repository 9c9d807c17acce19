"""The keys of the service: made, rotated, revoked, and known again by their secret's hash."""

import asyncio
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, Literal, NamedTuple, get_args
from uuid import UUID

from pydantic import JsonValue

from refold.errors import (
    ApiKeyNotFound,
    Conflict,
    InvalidInput,
    SessionForgotten,
    SessionNotFound,
    StoreError,
)
from refold.log import CODEC, Author, Draft, Log, Note, Opened, Span, Store
from refold.log.entry import check_name

# Notes that all processes of the service share: a session of a tenant that nobody else has.
#
# What the service must remember is appended there as notes with data, on whatever store it has: so
# it
# survives a process, reaches the others, and says who did what when.

TENANT: Final = "refold.service"
"""The tenant of the service itself: no key is for it."""
_FORMAT, _PROFILE = "openai-chat", "balanced"  # a session has some, though no model sees this one
_PAGE: Final = 1_000


class Written(NamedTuple):
    """A note as it was written."""

    seq: int
    at: int
    data: dict[str, JsonValue]


class Journal:
    """One such session, read from its beginning and then on from where it was read to."""

    def __init__(self, log: Log, session: str, author: Author | None = None) -> None:
        self._log = log
        self._session = session
        self._author = author or Author()
        self.upto = 0
        """The newest entry that was read."""
        self.forgotten = False
        """Whether somebody had the session forgotten: what it said is gone."""

    async def news(self) -> list[Written]:
        """The notes that were written since the last time."""
        try:
            head = await self._log.head(self._session)
        except (SessionNotFound, SessionForgotten) as error:
            self.forgotten = self.forgotten or isinstance(error, SessionForgotten)
            self.upto = 0
            return []
        found: list[Written] = []
        while self.upto < head:
            span = Span(self.upto + 1, min(head, self.upto + _PAGE))
            for entry in await self._log.read(self._session, span):
                match None if entry.forgotten else CODEC.decode(entry):
                    case Note(data=dict(data)):
                        found.append(Written(entry.seq, entry.at, data))
                    case _:
                        pass
            self.upto = span.last
        return found

    async def add(self, notes: Sequence[Note], *, exactly: bool = True) -> None:
        """Write notes: right after what was read (else Conflict), or wherever the end is."""
        drafts = [self._author.draft(note) for note in notes]
        if exactly and self.upto:
            await self._log.append(self._session, drafts, expected=self.upto)
        elif exactly:
            await self._log.append(self._session, [self._opening(), *drafts], expected=0)
        else:
            await self._log.append(self._session, drafts, expected=None)

    async def begin(self) -> None:
        """Make the session, unless it is there."""
        try:
            await self._log.head(self._session)
        except (SessionNotFound, SessionForgotten):
            await self._log.append(self._session, [self._opening()], expected=0)

    async def erase(self, seqs: Sequence[int]) -> None:
        """Have notes forgotten, for good."""
        for seq in seqs:
            await self._log.forget(self._session, Span(seq, seq))

    def _opening(self) -> Draft:
        return self._author.draft(Opened(_FORMAT, _PROFILE, title=f"{TENANT}: {self._session}"))


# What the notes about keys come to, one after the other.

Role = Literal["use", "read", "write", "admin"]
"""What a key is good for: the gateway; reading over the API; changing over it; keys and all."""
ROLES: Final[tuple[Role, ...]] = get_args(Role)
State = Literal["active", "expired", "revoked"]


class Secret(NamedTuple):
    """What is known of a secret."""

    hash: str
    until: int | None = None
    """Milliseconds since 1970, where an end is set: a newer secret has taken over."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the service: who may do what, for which tenant."""

    id: str
    tenant: str
    name: str
    roles: frozenset[Role]
    created_at: int
    until: int | None = None
    """When it expires, milliseconds since 1970."""
    secrets: tuple[Secret, ...] = field(default=(), repr=False)
    """The newest last; the others are valid for a while."""
    revoked_at: int | None = None

    def state(self, now: int) -> State:
        """How it stands."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.until is not None and now >= self.until else "active"

    def takes(self, hash: str, now: int) -> bool:  # noqa: A002 - the glossary's word
        """Whether this secret of it opens anything now."""
        return self.state(now) == "active" and any(
            one.hash == hash and (one.until is None or now < one.until) for one in self.secrets
        )


class Sealed(NamedTuple):
    """A provider's key, encrypted."""

    tenant: str
    upstream: str
    sealed: str
    at: int
    seq: int
    """Where it is written."""


class Quota(NamedTuple):
    """How much a tenant may use in a day (UTC); None: whatever the settings say."""

    tokens: int | None = None
    cost: float | None = None
    """Dollars."""


@dataclass(slots=True)
class Kept:
    """Everything that the notes said so far."""

    keys: dict[str, Key] = field(default_factory=dict[str, Key])
    by_hash: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """Which key a secret is of; none of those that are revoked."""
    upstreams: dict[tuple[str, str], Sealed] = field(
        default_factory=dict[tuple[str, str], Sealed], repr=False
    )
    stale: set[int] = field(default_factory=set[int])
    """Notes with encrypted keys that nobody needs any more."""
    quotas: dict[str, Quota] = field(default_factory=dict[str, Quota])
    owners: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The keys that sessions were handed over to, by tenant and the id of the log's first entry.
    Names are not kept here: they may be words that somebody has forgotten."""

    def take(self, note: Written) -> None:
        """Take in one note; one that this version does not know changes nothing."""
        match note.data:
            case {"event": "key.created", "id": str(key), "tenant": str(tenant)}:
                self._created(note, key, tenant)
            case {"event": "key.rotated", "id": str(key), "hash": str(new), "old_until": int(end)}:
                self._rotated(key, new, end)
            case {"event": "key.revoked", "id": str(key)}:
                self._revoked(key, note.at)
            case {
                "event": "upstream.sealed",
                "tenant": str(a),
                "upstream": str(b),
                "sealed": str(c),
            }:
                self._replaced(a, b)
                self.upstreams[a, b] = Sealed(a, b, c, note.at, note.seq)
            case {"event": "upstream.removed", "tenant": str(tenant), "upstream": str(upstream)}:
                self._replaced(tenant, upstream)
            case {
                "event": "session.handed-over",
                "tenant": str(a),
                "first_entry": str(b),
                "key": str(c),
            }:
                self.owners[a, b] = c
            case {"event": "quota.set", "tenant": str(tenant)}:
                self.quotas[tenant] = Quota(
                    _whole(note.data.get("tokens")), _number(note.data.get("cost"))
                )
            case _:
                pass

    def _created(self, note: Written, key: str, tenant: str) -> None:
        given = note.data.get("roles")
        named = given if isinstance(given, list) else []
        roles = frozenset[Role](one for one in ROLES if one in named)
        name, hashed = note.data.get("name"), str(note.data.get("hash"))
        self.keys[key] = Key(
            key,
            tenant,
            name if isinstance(name, str) else "",
            roles,
            note.at,
            _whole(note.data.get("until")),
            (Secret(hashed),),
        )
        self.by_hash[hashed] = key

    def _rotated(self, key: str, new: str, end: int) -> None:
        old = self.keys.get(key)
        if old is None or old.revoked_at is not None:
            return
        ended = tuple(
            one if one.until is not None and one.until <= end else Secret(one.hash, end)
            for one in old.secrets
        )
        self.keys[key] = replace(old, secrets=(*ended, Secret(new)))
        self.by_hash[new] = key

    def _revoked(self, key: str, at: int) -> None:
        old = self.keys.get(key)
        if old is None or old.revoked_at is not None:
            return
        self.keys[key] = replace(old, secrets=(), revoked_at=at)
        for one in old.secrets:
            self.by_hash.pop(one.hash, None)

    def _replaced(self, tenant: str, upstream: str) -> None:
        old = self.upstreams.pop((tenant, upstream), None)
        if old is not None:
            self.stale.add(old.seq)


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) else None


def _number(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, int | float) else None


# Secrets: how the service's own are made and known again, and how none is ever shown.

PREFIX: Final = "rfk_"
_SECRET: Final = re.compile(r"rfk_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_LONGEST: Final = len(PREFIX) + 12 + 1 + 43
_SHOWN: Final = "…"
_HIDDEN: Final = (
    re.compile(r"rfk_[A-Za-z0-9]+_[A-Za-z0-9_-]+"),
    re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),
)


def new_id() -> str:
    """The id of a new key: no secret."""
    return secrets.token_hex(6)


def new_secret(key: str) -> str:
    """A new secret for the key of this id."""
    return f"{PREFIX}{key}_{secrets.token_urlsafe(32)}"


def hash_of(secret: str) -> str:
    """All that is kept of a secret. It is as random as the hash is long, so no salt is needed."""
    return sha256(secret.encode()).hexdigest()


def is_secret(text: str) -> bool:
    """Whether it has the form of one of ours."""
    return len(text) == _LONGEST and _SECRET.fullmatch(text) is not None


def secret_in(headers: Mapping[str, str]) -> str | None:
    """The service's own key among the headers of a request, if one came.

    It is in `Refold-Key`, or where the clients of the providers put theirs.
    """
    given = headers.get("refold-key")
    if given is not None:
        return given.strip()
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and bearer.strip().startswith(PREFIX):
        return bearer.strip()
    other = headers.get("x-api-key", "").strip()
    return other if other.startswith(PREFIX) else None


def without_secrets(text: str) -> str:
    """The text as it may be shown: nothing in it that looks like a key or a password."""
    for one in _HIDDEN:
        text = one.sub(_SHOWN, text)
    return text


class NoSecrets(logging.Filter):
    """Takes secrets out of what is logged, tracebacks included."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Every record passes, without its secrets."""
        record.msg, record.args = without_secrets(record.getMessage()), ()
        if record.exc_info and record.exc_info[0] is not None:
            formatter = logging.Formatter()
            record.exc_text = without_secrets(formatter.formatException(record.exc_info))
            record.exc_info = None
        return True


EVERYBODY: Final = "*"
"""Stands for all tenants where an upstream's key is kept; no tenant is called so."""
OVERLAP: Final = 24 * 60 * 60.0
"""Seconds that the old secret is valid beside the new one, unless told otherwise."""
_SESSION: Final = "keys"
_FRESH: Final = 1.0  # seconds that nobody looks what other processes wrote
_PAUSE: Final = 0.05  # seconds between two looks, however many wrong keys come
_TRIES: Final = 20


class Made(NamedTuple):
    """A key with its new secret, which is told this once."""

    key: Key
    secret: str

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Made({self.key!r})"


class Keyring:
    """Knows the keys of all tenants. Changes of other processes are seen within a second."""

    def __init__(
        self,
        log: Log,
        *,
        author: Author | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a keyring over the log of the service's own tenant: see `keyring_of`."""
        if log.tenant != TENANT:
            raise InvalidInput("That is no log of the service's own tenant.", "Use keyring_of.")
        self._journal = Journal(log, _SESSION, author)
        self._kept = Kept()
        self._now = now
        self._tick = tick
        self._looking = asyncio.Lock()
        self._looked = float("-inf")
        self._failed_looks = 0
        self._failure: StoreError | None = None

    @property
    def age(self) -> float:
        """Seconds since the keys were last read."""
        return self._tick() - self._looked

    @property
    def kept(self) -> Kept:
        """What is known by now."""
        return self._kept

    @property
    def any(self) -> bool:
        """Whether a key was ever made: from then on, nobody is let in without one."""
        return bool(self._kept.keys) or self._journal.forgotten

    async def look(self) -> None:
        """Take in what any process wrote before this call."""
        asked, failed_looks = self._tick(), self._failed_looks
        async with self._looking:
            if self._looked >= asked:
                return  # who looked while we waited has seen it
            if self._failure is not None and self._failed_looks > failed_looks:
                # The look that we waited for failed. One after the other would each wait as long.
                raise self._failure.with_traceback(None)
            pause = self._looked + _PAUSE - self._tick()
            if pause > 0:
                await asyncio.sleep(pause)
            began = self._tick()
            try:
                news = await self._journal.news()
            except StoreError as error:
                self._failure = error
                self._failed_looks += 1
                raise
            if not self._journal.upto:
                self._kept = Kept()  # nothing was written yet, or all of it was forgotten
            for note in news:
                self._kept.take(note)
            self._looked = began

    async def current(self) -> None:
        """Take in what others wrote, unless that was done just now."""
        if self._tick() - self._looked >= _FRESH:
            await self.look()

    async def find(self, secret: str) -> Key | None:
        """The key that this is a valid secret of."""
        if not is_secret(secret):
            return None
        await self.current()
        hashed = hash_of(secret)
        found = self._valid(hashed)
        if found is None:
            await self.look()  # it may have been made a moment ago, elsewhere
            found = self._valid(hashed)
        return found

    def known(self, secret: str) -> Key | None:
        """The key that this is a valid secret of, by what was read before."""
        return self._valid(hash_of(secret)) if is_secret(secret) else None

    def keys(self, tenant: str | None = None) -> list[Key]:
        """The keys of a tenant, or of all, oldest first."""
        return [one for one in self._kept.keys.values() if tenant in (None, one.tenant)]

    def state(self, key: Key) -> str:
        """Whether it is active, expired or revoked."""
        return key.state(self._now())

    async def create(
        self,
        tenant: str,
        roles: Collection[Role],
        *,
        name: str = "",
        until: int | None = None,
        by: str = "",
    ) -> Made:
        """Make a key.

        Args:
            tenant: Whose sessions it opens.
            roles: What it is good for.
            name: For people.
            until: When it expires, milliseconds since 1970.
            by: Who made it: a key's id.
        """
        check_tenant(tenant)
        _check(roles, name, until, self._now())
        key = new_id()
        secret = new_secret(key)
        data: dict[str, JsonValue] = {
            "event": "key.created",
            "id": key,
            "tenant": tenant,
            "roles": [one for one in ROLES if one in roles],
            "name": name,
            "hash": hash_of(secret),
            "until": until,
            "by": by,
        }
        await self.write(lambda: [Note(f"Key {key} was made for tenant {tenant}.", data)])
        return Made(self._kept.keys[key], secret)

    async def rotate(
        self, key: str, *, overlap: float = OVERLAP, tenant: str | None = None, by: str = ""
    ) -> Made:
        """Give a key a new secret; the old one is valid for `overlap` more seconds.

        With `tenant`, the key must be that tenant's.
        """
        if not 0 <= overlap <= 366 * OVERLAP:
            raise InvalidInput(f"The old secret cannot stay valid for {overlap} seconds.")
        secret = new_secret(key)

        def notes() -> list[Note]:
            self._active(key, tenant)
            end = self._now() + round(overlap * 1000)
            data: dict[str, JsonValue] = {
                "event": "key.rotated",
                "id": key,
                "hash": hash_of(secret),
                "old_until": end,
                "by": by,
            }
            return [Note(f"Key {key} has a new secret.", data)]

        await self.write(notes)
        return Made(self._kept.keys[key], secret)

    async def revoke(self, key: str, *, tenant: str | None = None, by: str = "") -> Key:
        """End a key, now and for good; doing it again changes nothing."""

        def notes() -> list[Note]:
            if self.key(key, tenant).revoked_at is not None:
                return []
            data: dict[str, JsonValue] = {"event": "key.revoked", "id": key, "by": by}
            return [Note(f"Key {key} was revoked.", data)]

        await self.write(notes)
        return self._kept.keys[key]

    def quota(self, tenant: str) -> Quota:
        """What a tenant may use in a day, where that was said."""
        return self._kept.quotas.get(tenant, Quota())

    async def set_quota(self, tenant: str, quota: Quota, *, by: str = "") -> None:
        """Say what a tenant may use in a day."""
        check_tenant(tenant)
        if (quota.tokens or 0) < 0 or not 0 <= (quota.cost or 0) < float("inf"):
            raise InvalidInput("A quota is a number that is not negative.")
        data: dict[str, JsonValue] = {"event": "quota.set", "tenant": tenant, **quota._asdict()}
        data["by"] = by
        await self.write(lambda: [Note(f"Tenant {tenant} has another quota.", data)])

    def owner(self, tenant: str, first_entry: UUID) -> str | None:
        """The id of the key that a session was handed over to, if it was."""
        return self._kept.owners.get((tenant, str(first_entry)))

    async def hand_over(self, tenant: str, first_entry: UUID, key: str, *, by: str = "") -> Key:
        """Let a session belong to another key of its tenant from now on.

        A session is known by the id of its log's first entry: one that is begun again by the same
        name is another.
        """

        def notes() -> list[Note]:
            self._active(key, tenant)
            data: dict[str, JsonValue] = {
                "event": "session.handed-over",
                "tenant": tenant,
                "first_entry": str(first_entry),
                "key": key,
                "by": by,
            }
            return [Note(f"A session of tenant {tenant} was handed over to key {key}.", data)]

        await self.write(notes)
        return self._kept.keys[key]

    def key(self, key: str, tenant: str | None = None) -> Key:
        """The key of this id; another tenant's is as if it never was."""
        found = self._kept.keys.get(key)
        if found is None or tenant not in (None, found.tenant):
            raise ApiKeyNotFound("There is no such key.")
        return found

    async def write(self, notes: Callable[[], Sequence[Note]]) -> None:
        """Write what `notes` says of how things stand; it is asked again when they have changed."""
        for last in range(_TRIES):
            await self.look()
            written = notes()
            if not written:
                return
            try:
                await self._journal.add(written)
            except Conflict:
                if last == _TRIES - 1:
                    raise
                continue
            await self.look()
            return

    async def erase(self, seqs: Sequence[int]) -> None:
        """Have notes forgotten whose secrets nobody needs any more."""
        await self._journal.erase(seqs)
        self._kept.stale.difference_update(seqs)

    def _valid(self, hashed: str) -> Key | None:
        key = self._kept.keys.get(self._kept.by_hash.get(hashed, ""))
        if key is None or not key.takes(hashed, self._now()):
            return None
        return key if any(hmac.compare_digest(one.hash, hashed) for one in key.secrets) else None

    def _active(self, key: str, tenant: str | None) -> Key:
        found = self.key(key, tenant)
        if found.state(self._now()) != "active":
            raise InvalidInput(
                f"Key {key} is {found.state(self._now())}.", "Make a new one: refold keys create"
            )
        return found


def keyring_of(store: Store) -> Keyring:
    """The keyring of a store."""
    return Keyring(store.log(TENANT))


def check_tenant(tenant: str) -> None:
    """Refuse a name that no tenant of the service may have."""
    check_name(tenant, "tenant")
    if tenant in (TENANT, EVERYBODY):
        raise InvalidInput(f"{tenant!r} is no tenant's name.", "Use another name.")


def _check(roles: Collection[Role], name: str, until: int | None, now: int) -> None:
    if not roles or not set(roles) <= set(ROLES):
        raise InvalidInput("A key has at least one role.", f"They are: {', '.join(ROLES)}.")
    if name:
        check_name(name, "key")
    if until is not None and until <= now:
        raise InvalidInput("A key cannot expire before it is made.", "Name a time to come.")
