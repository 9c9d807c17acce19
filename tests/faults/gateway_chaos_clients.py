"""Agents that hold conversations through gateways that come and go.

Each keeps its history, as agents do, and takes an answer into it when it has seen its end.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from time import time
from uuid import uuid4

import httpx2
from gateway_chaos_formats import (
    Json,
    Stream,
    assistant,
    body_of,
    calls_in,
    returns,
    said_in,
    user,
)
from gateway_chaos_upstream import CALM, SAYS, TALK

_TURNS = 25
"""After so many the conversation is over, and another begins."""
_PATIENCE = httpx2.Timeout(60.0, connect=20.0)
_WORDS = "please look after the thing, and say how it stands; "


class Left(Exception):
    """The client left in mid-stream."""


@dataclass
class Talk:
    """One conversation; what it holds is acknowledged."""

    id: str
    path: str
    model: str
    history: list[Json] = field(default_factory=list[Json])
    answers: list[tuple[Json, float]] = field(default_factory=list[tuple[Json, float]])
    """Those of its messages that are answers of the model's, and until when the log has each."""
    session: str = ""
    """The one that the newest answer named."""
    turns: int = 0

    def went_on(self, more: list[Json], answered: "Answered") -> None:
        """The end of an answer was seen."""
        self.history += [*more, *answered.said]
        seen = answered.at if answered.is_logged else inf
        self.answers += [(one, seen) for one in answered.said]
        self.session = answered.session


@dataclass(frozen=True, slots=True)
class Answered:
    said: list[Json]
    session: str
    is_logged: bool
    """Else the store could not take it, which the answer says: it is logged with what follows."""
    at: float = field(default_factory=time)
    """Seconds since 1970, by the clock that all processes of this machine share."""


class Agent:
    """A client, and its conversations."""

    def __init__(self, number: int, path: str, model: str, gateways: Sequence[str]):
        self._number = number
        self._path = path
        self._model = model
        self._gateways = gateways
        self._random = Random(number)  # noqa: S311 - what is said, no secret
        self._streamed = ""
        self.talks: list[Talk] = []
        self.figures: Counter[str] = Counter()
        self.wrong: list[str] = []

    async def live(self, client: httpx2.AsyncClient, stop: asyncio.Event) -> None:
        """Talk until told to stop; then the last request is still answered."""
        while not stop.is_set():
            if not self.talks or self.talks[-1].turns >= _TURNS:
                id_ = f"{self._number}-{len(self.talks)}"
                self.talks.append(Talk(id_, self._path, self._model))
            await self._turn(client, self.talks[-1], stop)
            await asyncio.sleep(self._random.uniform(0.1, 1.0))

    async def once_more(self, client: httpx2.AsyncClient) -> None:
        """One more request in each conversation, while all goes well."""
        for talk in self.talks:
            if not talk.session:
                continue
            says = self._token(talk)
            last = calls_in(talk.path, _newest(talk))
            more = returns(talk.path, [(one, says) for one in last]) or [user(says)]
            answered = await self._asked(client, talk, [*talk.history, *more], says, calm=True)
            if isinstance(answered, Answered):
                talk.went_on(more, answered)
                self.figures["once more"] += 1
            else:
                self.wrong.append(f"{talk.id} {talk.path}, once more: {answered}")

    async def _turn(self, client: httpx2.AsyncClient, talk: Talk, stop: asyncio.Event) -> None:
        """A prompt, and what follows from it until the model makes no more calls."""
        says = self._token(talk)
        if not talk.history and self._random.random() < 0.3:
            more = [user("hi")]  # as others begin, too
            says = "hi"
        else:
            more = [user(f"{says}: {_WORDS * self._random.randint(1, 12)}")]
        while more:
            said = await self._surely(client, talk, more, says)
            calls = calls_in(talk.path, said)
            more = returns(talk.path, [(one, self._returned(talk)) for one in calls])
            says = "" if not calls else _last_token(more)
            if stop.is_set():
                break
        talk.turns += 1

    async def _surely(
        self, client: httpx2.AsyncClient, talk: Talk, more: list[Json], says: str
    ) -> list[Json]:
        """Ask until it is answered; the answer. What was said may be changed on the way."""
        tries = 0
        while True:
            try:
                answered = await self._asked(client, talk, [*talk.history, *more], says)
            except Left:
                self.figures["left"] += 1
                more, says = self._after_leaving(talk, more, says)
                continue
            if isinstance(answered, Answered):
                break
            self.figures[answered] += 1
            self.figures["retried"] += not tries
            tries += 1
            await asyncio.sleep(min(2.0, 0.1 * 2**tries) * self._random.random())
        talk.went_on(more, answered)
        self.figures["acknowledged"] += answered.is_logged
        self.figures["answered while the store was away"] += not answered.is_logged
        return answered.said

    def _after_leaving(self, talk: Talk, more: list[Json], says: str) -> tuple[list[Json], str]:
        """Ask the same again, or something else, or keep what was seen and go on from there."""
        what = self._random.random()
        prompted = more[-1].get("role") == "user" and isinstance(more[-1].get("content"), str)
        if what < 0.5 or not prompted:
            return more, says
        says = self._token(talk)
        if what < 0.75 or not self._streamed.strip():
            return [*more[:-1], user(f"{says}: or rather not.")], says
        self.figures["kept half"] += 1
        return [*more, assistant(self._streamed), user(f"{says}: go on.")], says

    async def _asked(
        self, client: httpx2.AsyncClient, talk: Talk, said: list[Json], says: str, *, calm=False
    ) -> Answered | str:
        """What was answered, or why nothing was."""
        stream = self._random.random() < 0.6
        body = body_of(talk.path, talk.model, said, stream=stream)
        headers = {TALK: talk.id, SAYS: says, **({CALM: "yes"} if calm else {})}
        url = self._random.choice(self._gateways) + talk.path
        self.figures["requests"] += 1
        try:
            async with client.stream("POST", url, json=body, headers=headers) as response:
                if response.status_code != 200:
                    return self._refused(response, await response.aread(), talk)
                session = response.headers["refold-session"]
                if not stream:
                    await response.aread()
                    managed = response.headers["refold-managed"]
                    is_logged = managed != "yes; answer=not-logged"
                    return Answered(said_in(talk.path, response.json()), session, is_logged)
                return await self._listened(response, talk, session, leaves=not calm)
        except httpx2.TimeoutException as error:
            return type(error).__name__
        except httpx2.TransportError:
            return "broken off"

    async def _listened(
        self, response: httpx2.Response, talk: Talk, session: str, *, leaves: bool
    ) -> Answered | str:
        stream = Stream(talk.path)
        leaves_after = self._random.randint(1, 8) if leaves and self._random.random() < 0.08 else 0
        self._streamed = ""
        answered: Answered | None = None
        chunks = 0
        try:
            async for chunk in response.aiter_raw():
                stream.feed(chunk)
                chunks += 1
                if stream.done and answered is None:
                    answered = Answered(stream.said, session, stream.is_logged)
                elif chunks == leaves_after and answered is None:
                    self._streamed = stream.text
                    raise Left
        except httpx2.TransportError:  # once its end was seen, what comes of it does not matter
            if answered is None:
                raise
        return answered or "ended early"

    def _refused(self, response: httpx2.Response, content: bytes, talk: Talk) -> str:
        if b"scripted" in content:
            return "upstream's error"
        if response.status_code < 500:
            self.wrong.append(f"{talk.id} {talk.path}: {response.status_code} {content[:300]!r}")
        return f"{response.status_code} {_code(response)}"

    def _token(self, talk: Talk) -> str:
        return f"u-{talk.id}-{uuid4().hex[:8]}"

    def _returned(self, talk: Talk) -> str:
        return f"{self._token(talk)}: " + "a line of what there is\n" * self._random.randint(1, 120)


def new_client() -> httpx2.AsyncClient:
    """For all agents: each would take long to be made."""
    few = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=2.0)
    return httpx2.AsyncClient(timeout=_PATIENCE, limits=few)


def _newest(talk: Talk) -> list[Json]:
    """The newest answer: of responses, as many items as it may have."""
    if talk.path != "/v1/responses":
        return talk.history[-1:]
    answered = {one["call_id"] for one in talk.history if one.get("type") == "function_call_output"}
    calls = [one for one in talk.history if one.get("type") == "function_call"]
    return [one for one in calls if one["call_id"] not in answered]


def _last_token(more: list[Json]) -> str:
    one = more[-1]
    text = one.get("output") or one["content"]
    return (text if isinstance(text, str) else text[-1]["content"]).partition(":")[0]


def _code(response: httpx2.Response) -> str:
    try:
        body = response.json()
    except ValueError:
        return "?"
    error = body.get("error", {}) if isinstance(body, dict) else {}
    return str(error.get("code") or error.get("type") or "?")
