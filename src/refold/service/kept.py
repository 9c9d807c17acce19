"""What the notes about keys come to, one after the other."""

from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, get_args

from pydantic import JsonValue

from refold.service.journal import Written

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
