"""Who may look: browsers sign in with a key, or with a token that works once.

A browser gets the id of a session that is kept here, never a key: a stolen page or log holds no
secret, and a key that is revoked, rotated or expired ends the sessions that began with it. Where no
keys exist, only this machine may look, through an address with a token that the terminal printed.
"""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Protocol
from urllib.parse import SplitResult, urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from refold.errors import KeyNeeded, NotLocal
from refold.service.callers import ANYBODY, Caller, Limits, check_local
from refold.service.keys import Keyring, hash_of

HOME: Final = "/console"
MAX_AGE: Final = 12 * 60 * 60.0
"""Seconds that a browser stays signed in."""
_MAX_SESSIONS: Final = 10_000
_MAX_TOKENS: Final = 16
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """What is known of a browser that has signed in."""

    secret_hash: str
    """Of the secret it signed in with, as the keyring knows it; empty: with a token."""
    form_token: str
    """What each form of its pages must send along; another site cannot read it."""
    until: float


class Gatekeeper(Protocol):
    """What decides about a browser besides its session."""

    @property
    def keyring(self) -> Keyring | None:
        """None: the keys of the store do not matter, only tokens do."""
        ...

    @property
    def local(self) -> bool: ...

    @property
    def limits(self) -> Limits: ...


class Access:
    """The browsers that are signed in, in this process."""

    def __init__(
        self,
        gatekeeper: Gatekeeper,
        tenant: str = ANYBODY.tenant,
        *,
        token_used: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let browsers in.

        Args:
            gatekeeper: The keys, and whether only this machine reaches the service.
            tenant: Whose sessions are seen by who has no key.
            token_used: Called when a token was used, so that a new one can be offered.
            clock: Seconds; tests give another.
        """
        self._gatekeeper = gatekeeper
        self._anybody = replace(ANYBODY, tenant=tenant)
        self._token_used = token_used
        self._clock = clock
        self._sessions: OrderedDict[str, BrowserSession] = OrderedDict()
        self._tokens: list[str] = []

    @property
    def by_key(self) -> bool:
        """Whether a key is needed; else a token of this machine's terminal."""
        keyring = self._gatekeeper.keyring
        return keyring is not None and (keyring.any or not self._gatekeeper.local)

    def new_token(self) -> str:
        """A token that opens the console once, for who sees this machine's terminal."""
        token = secrets.token_urlsafe(32)
        self._tokens = [*self._tokens, token][-_MAX_TOKENS:]
        return token

    def check(self, request: HTTPConnection) -> None:
        """Refuse what another site sends through the browser, whoever is signed in.

        A page may have its own name point to this machine. So without keys the host must be this
        machine; with keys, a browser has no session for another name.

        Raises:
            NotLocal: The request comes from another site.
        """
        if not self.by_key:
            check_local(request)
        if request.scope["method"] in _SAFE_METHODS:
            return
        host = request.headers.get("host", "")
        if not host or _origin(request).netloc != host:
            raise NotLocal("A form of another site cannot do that here.")

    async def sign_in(self, secret: str) -> str | None:
        """The id of a new session, if that is a valid secret of a key."""
        keyring = self._gatekeeper.keyring
        if keyring is None or await keyring.find(secret) is None:
            return None
        return self._begin(hash_of(secret))

    def exchange(self, token: str) -> str | None:
        """The id of a new session for a token, which then works no more."""
        if self.by_key:
            return None
        match = next((each for each in self._tokens if _same(each, token)), None)
        if match is None:
            return None
        self._tokens.remove(match)
        self._token_used()
        return self._begin("")

    def session_of(self, request: HTTPConnection) -> BrowserSession | None:
        """The session of the browser that sends this, whether or not its key is still valid."""
        session = self._sessions.get(_hashed(request.cookies.get(cookie_name(request), "")))
        if session is None or self._clock() >= session.until:
            return None
        return None if not session.secret_hash and self.by_key else session

    async def caller_of(self, request: Request) -> Caller:
        """The caller that a browser acts for, counted once for each request.

        Raises:
            KeyNeeded: Nobody has signed in.
            NotLocal: The request comes from another site.
        """
        self.check(request)
        caller = await self.admit(request)
        self._gatekeeper.limits.admit(caller)
        return caller

    async def admit(self, request: HTTPConnection) -> Caller:
        """The caller as long as the session and its key are valid, without counting."""
        session = self.session_of(request)
        if session is None:
            raise KeyNeeded("Nobody has signed in to the console.")
        if not session.secret_hash:
            return self._anybody
        keyring = self._gatekeeper.keyring
        key = None if keyring is None else await keyring.find_by_hash(session.secret_hash)
        if key is None:
            raise KeyNeeded("The key of this session is no longer valid.")
        return Caller(key.tenant, key.id, key.roles)

    def check_form(self, request: HTTPConnection, token: str) -> None:
        """Refuse a form that is none of ours.

        Raises:
            NotLocal: Its token is not that of the browser's session.
        """
        session = self.session_of(request)
        if session is None or not _same(session.form_token, token):
            raise NotLocal("The form is not of this session.")

    def sign_out(self, request: HTTPConnection) -> None:
        """End the browser's session."""
        self._sessions.pop(_hashed(request.cookies.get(cookie_name(request), "")), None)

    def _begin(self, secret_hash: str) -> str:
        name = secrets.token_urlsafe(32)
        until = self._clock() + MAX_AGE
        self._sessions[_hashed(name)] = BrowserSession(
            secret_hash, secrets.token_urlsafe(32), until
        )
        while len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return name


def set_cookie(request: HTTPConnection, response: Response, session: str) -> None:
    """Give the browser the id of its session; scripts and other sites never see it."""
    # Whether it came over TLS, only the browser knows: a proxy may have taken it off.
    secure = _origin(request).scheme == "https"
    response.set_cookie(
        cookie_name(request),
        session,
        path=HOME,
        httponly=True,
        samesite="strict",
        secure=secure,
    )


def forget_cookie(request: HTTPConnection, response: Response) -> None:
    response.delete_cookie(cookie_name(request), path=HOME, httponly=True, samesite="strict")


def cookie_name(request: HTTPConnection) -> str:
    """Browsers send cookies to every port of a machine, so each port has a name of its own."""
    try:
        port = urlsplit(f"//{request.headers.get('host', '')}").port
    except ValueError:
        port = None
    return f"refold-console-{port or 0}"


def _origin(request: HTTPConnection) -> SplitResult:
    """The page that sends this; empty where the browser does not say, or says nothing readable."""
    try:
        return urlsplit(request.headers.get("origin", ""))
    except ValueError:
        return urlsplit("")


def _same(secret: str, other: str) -> bool:
    return hmac.compare_digest(secret.encode(), other.encode(errors="replace"))


def _hashed(session: str) -> str:
    return sha256(session.encode()).hexdigest()
