"""Who may look: browsers sign in with a key, or with a token that works once.

A browser gets the id of a session, never a key: a stolen page or log holds no secret, and a key
that is revoked, rotated or expired ends the sessions that began with it. Every process that serves
the store knows these sessions, by a hash. Where no keys exist, only this machine may look, through
an address with a token that the terminal printed.
"""

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final, NamedTuple, Protocol
from urllib.parse import SplitResult, urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from refold.errors import KeyNeeded, NotLocal, SessionForgotten, SessionNotFound
from refold.log import Log
from refold.service.callers import ANYBODY, Caller, Limits, check_local
from refold.service.keys import Journal, JournalNote, Keyring, event_note, hash_of

HOME: Final = "/console"
MAX_AGE: Final = 12 * 60 * 60.0
"""Seconds that a browser stays signed in."""
_FRESH: Final = 1.0
"""Seconds that what was read of other processes counts as up to date."""
_OLD_DAYS: Final = 7
"""Days back that are looked through for sign-ins to forget."""
_MAX_TOKENS: Final = 16
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})


class SignedIn(NamedTuple):
    """What is known of a browser that has signed in."""

    secret_hash: str
    """Of the secret it signed in with, as the keyring knows it; empty: with a token."""
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


@dataclass(slots=True)
class _Day:
    """The sign-ins of one day, as notes in the log of the service's own tenant."""

    journal: Journal
    sessions: dict[str, SignedIn] = field(default_factory=dict[str, SignedIn])

    async def refresh(self) -> None:
        for note in await self.journal.news():
            self._take(note)

    def _take(self, note: JournalNote) -> None:
        match note.data:
            case {
                "event": "console.signed-in",
                "id": str(name),
                "secret": str(secret),
                "until": int() | float() as until,
            }:
                self.sessions[name] = SignedIn(secret, float(until))
            case {"event": "console.signed-out", "id": str(name)}:
                self.sessions.pop(name, None)
            case _:
                pass


class SharedSessions:
    """The browsers that signed in with a key, known to all processes that serve the store."""

    def __init__(self, log: Log, clock: Callable[[], float]) -> None:
        self._log = log
        self._clock = clock
        self._days: dict[str, _Day] = {}
        self._refreshed = float("-inf")

    async def add(self, name: str, secret_hash: str) -> None:
        """Remember a sign-in, and forget those of days that are over."""
        until = self._clock() + MAX_AGE
        words = "A browser signed in to the console."
        note = event_note(words, "console.signed-in", id=name, secret=secret_hash, until=until)
        day = self._day(0)
        await day.journal.begin()
        await day.journal.add([note], exactly=False)
        await day.refresh()
        for back in range(2, 2 + _OLD_DAYS):
            await self._forget(back)

    async def find(self, name: str) -> SignedIn | None:
        if self._clock() - self._refreshed >= _FRESH or self._find(name) is None:
            for back in (1, 0):
                await self._day(back).refresh()
            self._refreshed = self._clock()
        return self._find(name)

    async def end(self, name: str) -> None:
        for back in (1, 0):
            day = self._day(back)
            if name in day.sessions:
                words = "A browser signed out of the console."
                note = event_note(words, "console.signed-out", id=name)
                await day.journal.add([note], exactly=False)
                await day.refresh()

    def _find(self, name: str) -> SignedIn | None:
        days = (self._day(back).sessions.get(name) for back in (0, 1))
        found = next((each for each in days if each is not None), None)
        return None if found is None or self._clock() >= found.until else found

    def _day(self, back: int) -> _Day:
        name = self._name(back)
        if name not in self._days:
            self._days = {each: self._days[each] for each in [*self._days][-1:]}
            self._days[name] = _Day(Journal(self._log, name))
        return self._days[name]

    def _name(self, back: int) -> str:
        day = datetime.fromtimestamp(self._clock(), UTC) - timedelta(days=back)
        return f"console-{day:%Y-%m-%d}"

    async def _forget(self, back: int) -> None:
        try:
            await self._log.head(self._name(back))
            await self._log.forget(self._name(back))
        except (SessionNotFound, SessionForgotten):
            pass


class Access:
    """Lets browsers in, and says for whom they act."""

    def __init__(
        self,
        gatekeeper: Gatekeeper,
        tenant: str = ANYBODY.tenant,
        *,
        sessions: Log | None = None,
        token_used: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Let browsers in.

        Args:
            gatekeeper: The keys, and whether only this machine reaches the service.
            tenant: Whose sessions are seen by who has no key.
            sessions: The log of the service's own tenant, for those who sign in with a key.
            token_used: Called when a token was used, so that a new one can be offered.
            clock: Seconds since 1970; tests give another.
        """
        self._gatekeeper = gatekeeper
        self._anybody = replace(ANYBODY, tenant=tenant)
        self._token_used = token_used
        self._clock = clock
        self._shared = None if sessions is None else SharedSessions(sessions, clock)
        self._by_token: dict[str, SignedIn] = {}
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
        keyring, shared = self._gatekeeper.keyring, self._shared
        if keyring is None or shared is None or await keyring.find(secret) is None:
            return None
        name = secrets.token_urlsafe(32)
        await shared.add(_hashed(name), hash_of(secret))
        return name

    def exchange(self, token: str) -> str | None:
        """The id of a new session for a token, which then works no more."""
        match = next((each for each in self._tokens if _same(each, token)), None)
        if match is None or self.by_key:
            return None
        self._tokens.remove(match)
        self._token_used()
        name = secrets.token_urlsafe(32)
        self._by_token[_hashed(name)] = SignedIn("", self._clock() + MAX_AGE)
        return name

    async def session_of(self, request: HTTPConnection) -> SignedIn | None:
        """The session of the browser that sends this, whether or not its key is still valid."""
        name = _hashed(_cookie(request))
        if not self.by_key:
            found = self._by_token.get(name)
            return None if found is None or self._clock() >= found.until else found
        return None if self._shared is None else await self._shared.find(name)

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
        session = await self.session_of(request) if _cookie(request) else None
        if session is None:
            raise KeyNeeded("Nobody has signed in to the console.")
        if not session.secret_hash:
            return self._anybody
        keyring = self._gatekeeper.keyring
        key = None if keyring is None else await keyring.find_by_hash(session.secret_hash)
        if key is None:
            raise KeyNeeded("The key of this session is no longer valid.")
        return Caller(key.tenant, key.id, key.roles)

    async def sign_out(self, request: HTTPConnection) -> None:
        """End the browser's session, for all processes."""
        name = _hashed(_cookie(request))
        self._by_token.pop(name, None)
        if self._shared is not None and await self._shared.find(name) is not None:
            await self._shared.end(name)


def form_token(request: HTTPConnection) -> str:
    """What each form of a browser's pages must send along; another site cannot know it."""
    session = _cookie(request)
    return _hashed(f"form {session}") if session else ""


def check_form(request: HTTPConnection, token: str) -> None:
    """Refuse a form that is none of ours.

    Raises:
        NotLocal: Its token is not that of the browser's session.
    """
    expected = form_token(request)
    if not expected or not _same(expected, token):
        raise NotLocal("The form is not of this session.")


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


def _cookie(request: HTTPConnection) -> str:
    return request.cookies.get(cookie_name(request), "")


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
