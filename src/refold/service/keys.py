"""The keys of the service: their journal, their secrets, and the keyring that issues them."""

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

TENANT: Final = "refold.service"
"""The tenant of the service itself: no key is for it."""
EVERYBODY: Final = "*"
"""All tenants, for an upstream's key; no tenant has this name."""
Role = Literal["use", "read", "write", "admin"]
"""What a key may do: use the gateway; read, or change, over the API; manage keys, and all else."""
ROLES: Final[tuple[Role, ...]] = get_args(Role)
State = Literal["active", "expired", "revoked"]
PREFIX: Final = "rfk_"
OVERLAP: Final = 24 * 60 * 60.0
"""Seconds that an old secret stays valid after a rotation, by default."""
_FORMAT, _PROFILE = "openai-chat", "balanced"  # a session needs some, though no model sees this one
_PAGE: Final = 1_000
_SECRET: Final = re.compile(r"rfk_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_SECRET_LENGTH: Final = len(PREFIX) + 12 + 1 + 43
_REDACTED: Final = "…"
_SECRET_PATTERNS: Final = (
    re.compile(r"rfk_[A-Za-z0-9]+_[A-Za-z0-9_-]+"),
    re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),
)
_SESSION: Final = "keys"
_FRESH: Final = 1.0  # seconds that keys count as up to date
_PAUSE: Final = 0.05  # seconds between two reads, however many wrong keys come
_MAX_TRIES: Final = 20


class JournalNote(NamedTuple):
    """A note as the journal holds it."""

    seq: int
    at: int
    data: dict[str, JsonValue]


class Journal:
    """Notes that all processes of the service share, in a session of the service's own tenant.

    What the service must remember is appended there as notes with data, on whatever store it has:
    so it survives a process, reaches the others, and says who did what when.
    """

    def __init__(self, log: Log, session: str, author: Author | None = None) -> None:
        self._log = log
        self._session = session
        self._author = author or Author()
        self.seq = 0
        """The newest entry that was read."""
        self.forgotten = False
        """Whether the session was forgotten, with all of its notes."""

    async def news(self) -> list[JournalNote]:
        """The notes written since the last call."""
        try:
            head = await self._log.head(self._session)
        except (SessionNotFound, SessionForgotten) as error:
            self.forgotten = self.forgotten or isinstance(error, SessionForgotten)
            self.seq = 0
            return []
        notes: list[JournalNote] = []
        while self.seq < head:
            span = Span(self.seq + 1, min(head, self.seq + _PAGE))
            for entry in await self._log.read(self._session, span):
                match None if entry.forgotten else CODEC.decode(entry):
                    case Note(data=dict(data)):
                        notes.append(JournalNote(entry.seq, entry.at, data))
                    case _:
                        pass
            self.seq = span.last
        return notes

    async def add(self, notes: Sequence[Note], *, exactly: bool = True) -> None:
        """Append notes: right after what was read (else Conflict), or wherever the end is."""
        drafts = [self._author.draft(note) for note in notes]
        if exactly and self.seq:
            await self._log.append(self._session, drafts, expected=self.seq)
        elif exactly:
            await self._log.append(self._session, [self._opening(), *drafts], expected=0)
        else:
            await self._log.append(self._session, drafts, expected=None)

    async def begin(self) -> None:
        """Create the session, unless it exists."""
        try:
            await self._log.head(self._session)
        except (SessionNotFound, SessionForgotten):
            await self._log.append(self._session, [self._opening()], expected=0)

    async def erase(self, seqs: Sequence[int]) -> None:
        for seq in seqs:
            await self._log.forget(self._session, Span(seq, seq))

    def _opening(self) -> Draft:
        return self._author.draft(Opened(_FORMAT, _PROFILE, title=f"{TENANT}: {self._session}"))


class Secret(NamedTuple):
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
    """The newest last; the others stay valid for a while."""
    revoked_at: int | None = None

    def state(self, now: int) -> State:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.until is not None and now >= self.until else "active"

    def takes(self, hash: str, now: int) -> bool:  # noqa: A002 - the glossary's word
        """Whether the secret with this hash is valid now."""
        return self.state(now) == "active" and any(
            hmac.compare_digest(secret.hash, hash) and (secret.until is None or now < secret.until)
            for secret in self.secrets
        )


class Sealed(NamedTuple):
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
class KeyRecords:
    """Everything that the notes have said so far."""

    keys: dict[str, Key] = field(default_factory=dict[str, Key])
    by_hash: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """The key of each secret, except revoked ones."""
    upstreams: dict[tuple[str, str], Sealed] = field(
        default_factory=dict[tuple[str, str], Sealed], repr=False
    )
    stale: set[int] = field(default_factory=set[int])
    """Notes with encrypted keys that were replaced or removed."""
    quotas: dict[str, Quota] = field(default_factory=dict[str, Quota])
    owners: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The keys that sessions were handed over to, by tenant and the id of the log's first entry.
    Session names are not kept here: they may contain words that must be forgotten."""

    def take(self, note: JournalNote) -> None:
        """Apply one note; one that this version does not know changes nothing."""
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
                cost = note.data.get("cost")
                self.quotas[tenant] = Quota(
                    _integer(note.data.get("tokens")),
                    float(cost) if isinstance(cost, int | float) else None,
                )
            case _:
                pass

    def _created(self, note: JournalNote, key: str, tenant: str) -> None:
        names = note.data.get("roles")
        roles = frozenset[Role](role for role in ROLES if isinstance(names, list) and role in names)
        name, hashed = note.data.get("name"), str(note.data.get("hash"))
        self.keys[key] = Key(
            key,
            tenant,
            name if isinstance(name, str) else "",
            roles,
            note.at,
            _integer(note.data.get("until")),
            (Secret(hashed),),
        )
        self.by_hash[hashed] = key

    def _rotated(self, key: str, new: str, end: int) -> None:
        old = self.keys.get(key)
        if old is None or old.revoked_at is not None:
            return
        ended = tuple(
            secret if secret.until is not None and secret.until <= end else Secret(secret.hash, end)
            for secret in old.secrets
        )
        self.keys[key] = replace(old, secrets=(*ended, Secret(new)))
        self.by_hash[new] = key

    def _revoked(self, key: str, at: int) -> None:
        old = self.keys.get(key)
        if old is None or old.revoked_at is not None:
            return
        self.keys[key] = replace(old, secrets=(), revoked_at=at)
        for secret in old.secrets:
            self.by_hash.pop(secret.hash, None)

    def _replaced(self, tenant: str, upstream: str) -> None:
        old = self.upstreams.pop((tenant, upstream), None)
        if old is not None:
            self.stale.add(old.seq)


def _integer(value: JsonValue) -> int | None:
    return value if isinstance(value, int) else None


def new_id() -> str:
    return secrets.token_hex(6)


def new_secret(key: str) -> str:
    return f"{PREFIX}{key}_{secrets.token_urlsafe(32)}"


def hash_of(secret: str) -> str:
    """All that is stored of a secret. It is as random as the hash is long, so it needs no salt."""
    return sha256(secret.encode()).hexdigest()


def is_secret(text: str) -> bool:
    return len(text) == _SECRET_LENGTH and _SECRET.fullmatch(text) is not None


def secret_in(headers: Mapping[str, str]) -> str | None:
    """The service's own key among the headers of a request, if any.

    It is in `Refold-Key`, or where clients put the provider's key.
    """
    own = headers.get("refold-key")
    if own is not None:
        return own.strip()
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and bearer.strip().startswith(PREFIX):
        return bearer.strip()
    other = headers.get("x-api-key", "").strip()
    return other if other.startswith(PREFIX) else None


def without_secrets(text: str) -> str:
    """The text without anything that looks like a key or a password."""
    for pattern in _SECRET_PATTERNS:
        text = pattern.sub(_REDACTED, text)
    return text


class NoSecrets(logging.Filter):
    """Removes secrets from log records, tracebacks included."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = without_secrets(record.getMessage()), ()
        if record.exc_info and record.exc_info[0] is not None:
            formatter = logging.Formatter()
            record.exc_text = without_secrets(formatter.formatException(record.exc_info))
            record.exc_info = None
        return True


class IssuedKey(NamedTuple):
    """A key with its new secret, which is shown this once."""

    key: Key
    secret: str

    def __repr__(self) -> str:
        return f"IssuedKey({self.key!r})"


class Keyring:
    """The keys of all tenants. Changes by other processes are seen within a second."""

    def __init__(
        self,
        log: Log,
        *,
        author: Author | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        if log.tenant != TENANT:
            raise InvalidInput("That is not a log of the service's own tenant.", "Use keyring_of.")
        self._journal = Journal(log, _SESSION, author)
        self.records = KeyRecords()
        self._now = now
        self._tick = tick
        self._refreshing = asyncio.Lock()
        self._refreshed = float("-inf")
        self._failures = 0
        self._failure: StoreError | None = None

    @property
    def age(self) -> float:
        return self._tick() - self._refreshed

    @property
    def any(self) -> bool:
        """Whether a key was ever made: from then on, every caller needs one."""
        return bool(self.records.keys) or self._journal.forgotten

    async def refresh(self) -> None:
        """Read what any process wrote before this call."""
        called, failures = self._tick(), self._failures
        async with self._refreshing:
            if self._refreshed >= called:
                return  # the refresh that we waited for has read it
            if self._failure is not None and self._failures > failures:
                # The refresh that we waited for failed. One after another would each wait as long.
                raise self._failure.with_traceback(None)
            pause = self._refreshed + _PAUSE - self._tick()
            if pause > 0:
                await asyncio.sleep(pause)
            began = self._tick()
            try:
                news = await self._journal.news()
            except StoreError as error:
                self._failure = error
                self._failures += 1
                raise
            if not self._journal.seq:
                self.records = KeyRecords()  # nothing was written yet, or all was forgotten
            for note in news:
                self.records.take(note)
            self._refreshed = began

    async def refresh_if_stale(self) -> None:
        """Read what others wrote, unless that was done within the last second."""
        if self._tick() - self._refreshed >= _FRESH:
            await self.refresh()

    async def find(self, secret: str) -> Key | None:
        """The key that this is a valid secret of."""
        return await self.find_by_hash(hash_of(secret)) if is_secret(secret) else None

    async def find_by_hash(self, hashed: str) -> Key | None:
        """The key with a valid secret of this hash."""
        await self.refresh_if_stale()
        key = self._valid(hashed)
        if key is None:
            await self.refresh()  # another process may have made it a moment ago
            key = self._valid(hashed)
        return key

    def find_cached(self, secret: str) -> Key | None:
        """The same, by what was read before."""
        return self._valid(hash_of(secret)) if is_secret(secret) else None

    def keys(self, tenant: str | None = None) -> list[Key]:
        return [key for key in self.records.keys.values() if tenant in (None, key.tenant)]

    def state(self, key: Key) -> str:
        return key.state(self._now())

    async def create(
        self,
        tenant: str,
        roles: Collection[Role],
        *,
        name: str = "",
        until: int | None = None,
        by: str = "",
    ) -> IssuedKey:
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
        note = event_note(
            f"Key {key} was made for tenant {tenant}.",
            "key.created",
            id=key,
            tenant=tenant,
            roles=[role for role in ROLES if role in roles],
            name=name,
            hash=hash_of(secret),
            until=until,
            by=by,
        )
        await self.write(lambda: [note])
        return IssuedKey(self.records.keys[key], secret)

    async def rotate(
        self, key: str, *, overlap: float = OVERLAP, tenant: str | None = None, by: str = ""
    ) -> IssuedKey:
        """Give a key a new secret; the old one is valid for `overlap` more seconds.

        With `tenant`, the key must be that tenant's.
        """
        if not 0 <= overlap <= 366 * OVERLAP:
            raise InvalidInput(f"The old secret cannot stay valid for {overlap} seconds.")
        secret = new_secret(key)

        def notes() -> list[Note]:
            self._check_active(key, tenant)
            end = self._now() + round(overlap * 1000)
            words, hashed = f"Key {key} has a new secret.", hash_of(secret)
            return [event_note(words, "key.rotated", id=key, hash=hashed, old_until=end, by=by)]

        await self.write(notes)
        return IssuedKey(self.records.keys[key], secret)

    async def revoke(self, key: str, *, tenant: str | None = None, by: str = "") -> Key:
        """End a key, now and for good; doing it again changes nothing."""

        def notes() -> list[Note]:
            if self.key(key, tenant).revoked_at is not None:
                return []
            return [event_note(f"Key {key} was revoked.", "key.revoked", id=key, by=by)]

        await self.write(notes)
        return self.records.keys[key]

    def quota(self, tenant: str) -> Quota:
        return self.records.quotas.get(tenant, Quota())

    async def set_quota(self, tenant: str, quota: Quota, *, by: str = "") -> None:
        check_tenant(tenant)
        if (quota.tokens or 0) < 0 or not 0 <= (quota.cost or 0) < float("inf"):
            raise InvalidInput("A quota is a number that is not negative.")
        words, values = f"Tenant {tenant} has another quota.", quota._asdict()
        note = event_note(words, "quota.set", tenant=tenant, **values, by=by)
        await self.write(lambda: [note])

    def owner(self, tenant: str, first_entry: UUID) -> str | None:
        """The id of the key that a session was handed over to, if it was."""
        return self.records.owners.get((tenant, str(first_entry)))

    async def hand_over(self, tenant: str, first_entry: UUID, key: str, *, by: str = "") -> Key:
        """Let a session belong to another key of its tenant from now on.

        A session is identified by the id of its log's first entry: a new one by the same name is
        another session.
        """

        def notes() -> list[Note]:
            self._check_active(key, tenant)
            return [
                event_note(
                    f"A session of tenant {tenant} was handed over to key {key}.",
                    "session.handed-over",
                    tenant=tenant,
                    first_entry=str(first_entry),
                    key=key,
                    by=by,
                )
            ]

        await self.write(notes)
        return self.records.keys[key]

    def key(self, key: str, tenant: str | None = None) -> Key:
        """The key of this id; with `tenant`, only if it is that tenant's."""
        record = self.records.keys.get(key)
        if record is None or tenant not in (None, record.tenant):
            raise ApiKeyNotFound("There is no such key.")
        return record

    async def write(self, notes: Callable[[], Sequence[Note]]) -> None:
        """Write the notes that follow from the current records; computed again after a conflict."""
        for attempt in range(1, _MAX_TRIES + 1):
            await self.refresh()
            pending = notes()
            if not pending:
                return
            try:
                await self._journal.add(pending)
            except Conflict:
                if attempt == _MAX_TRIES:
                    raise
                continue
            await self.refresh()
            return

    async def erase(self, seqs: Sequence[int]) -> None:
        """Forget notes whose secrets are no longer needed."""
        await self._journal.erase(seqs)
        self.records.stale.difference_update(seqs)

    def _valid(self, hashed: str) -> Key | None:
        key = self.records.keys.get(self.records.by_hash.get(hashed, ""))
        return key if key is not None and key.takes(hashed, self._now()) else None

    def _check_active(self, key: str, tenant: str | None) -> None:
        state = self.key(key, tenant).state(self._now())
        if state != "active":
            raise InvalidInput(f"Key {key} is {state}.", "Make a new one: refold keys create")


def keyring_of(store: Store) -> Keyring:
    """The keyring of a store."""
    return Keyring(store.log(TENANT))


def event_note(words: str, event: str, **data: JsonValue) -> Note:
    """A note of what happened to a key, with the data that `KeyRecords` reads."""
    return Note(words, {"event": event, **data})


def check_tenant(tenant: str) -> None:
    check_name(tenant, "tenant")
    if tenant in (TENANT, EVERYBODY):
        raise InvalidInput(f"{tenant!r} is not a tenant's name.", "Use another name.")


def _check(roles: Collection[Role], name: str, until: int | None, now: int) -> None:
    if not roles or not set(roles) <= set(ROLES):
        raise InvalidInput("A key needs at least one role.", f"They are: {', '.join(ROLES)}.")
    if name:
        check_name(name, "key")
    if until is not None and until <= now:
        raise InvalidInput("A key cannot expire in the past.", "Give a time in the future.")
