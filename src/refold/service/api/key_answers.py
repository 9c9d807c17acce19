"""What the API answers about keys and quotas."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from refold.service.api.answers import Answer, moment
from refold.service.kept import ROLES, Role
from refold.service.kept import Key as KeptKey


class Key(Answer):
    """A key of this service; its secret is nowhere."""

    id: str
    name: str
    roles: list[Role]
    state: Literal["active", "expired", "revoked"]
    created_at: datetime
    expires_at: datetime | None

    @classmethod
    def of(cls, key: KeptKey, now: int) -> "Key":
        """The key as an answer has it."""
        return cls(
            id=key.id,
            name=key.name,
            roles=[one for one in ROLES if one in key.roles],
            state=key.state(now),
            created_at=moment(key.created_at),
            expires_at=None if key.until is None else moment(key.until),
        )


class Keys(Answer):
    """The keys of a tenant, oldest first."""

    keys: list[Key]


class MadeKey(Key):
    """A key with its new secret."""

    secret: str = Field(repr=False, description="It is told this once, and kept nowhere.")


class Upstream(Answer):
    """An upstream for which a provider's key is kept."""

    upstream: str
    since: datetime


class Upstreams(Answer):
    """For which upstreams a provider's key is kept; the keys themselves are never told."""

    upstreams: list[Upstream]


class Quota(Answer):
    """How much the tenant may use in a day (UTC); null: whatever the service's settings say."""

    tokens: int | None
    cost: float | None = Field(description="Dollars.")
