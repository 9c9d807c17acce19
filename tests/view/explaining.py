"""Sessions, invented and random, with the explanations of their next requests."""

import asyncio
import json
from typing import NamedTuple

import explain_picture
from hypothesis import strategies as st
from sessions import Quarter, Session, scripts

from refold.errors import ViewTooLarge
from refold.log import Message, Opened
from refold.stores import MemoryStore
from refold.view.budget import Budget
from refold.view.explain import explain
from refold.view.profiles import PROFILES, Profile
from refold.view.project import project
from refold.view.view_input import ViewInput
from refold.wire import WIRES, wire_for


def explanation(session, profile, budget, *, read=True):
    """The explanation of a session's next request, with its input and its plan."""
    inputs = ViewInput.of(
        session.visible(profile.window.read or None), wire_for(session.format), Quarter()
    )
    plan = project(inputs, profile, budget)
    entries = session.entries if read else ()
    return explain(inputs, plan, budget, entries=entries), inputs, plan


class Request(NamedTuple):
    session: Session
    profile: Profile
    budget: Budget

    def __repr__(self):
        said = [(one.seq, one.kind, one.scope, one.body) for one in self.session.entries]
        return f"<{self.profile.name}, {self.budget.window}: {said}>"[:20_000]


@st.composite
def requests(draw):
    session = Session(draw(st.sampled_from(sorted(WIRES))))
    for name, *rest in draw(scripts(session.format)):
        if name == "message":
            session.add(Message(rest[0]), rest[1])
        elif name == "steer":
            session.apply(rest[0])
    profile = PROFILES[draw(st.sampled_from(sorted(PROFILES)))]
    budget = Budget(window=draw(st.sampled_from([600, 2_000, 20_000])))
    return Request(session, profile, budget)


def explained(request, **options):
    session, profile, budget = request
    try:
        return (session, *explanation(session, profile, budget, **options))
    except ViewTooLarge:
        return None


def chat(*messages, title="日本語の会話 — a long title that goes on 🙂"):
    session = Session("openai-chat")
    session.entries.clear()
    session.add(Opened("openai-chat", "balanced", title))
    for role, content, *more in messages:
        body = {"role": role, "content": content, **(more[0] if more else {})}
        session.add(Message(json.dumps(body).encode()))
    return session


def called(tool, name="c"):
    function = {"name": tool, "arguments": '{"名前": "全角の引数がとても長い場合"}'}
    return {"tool_calls": [{"id": name, "type": "function", "function": function}]}


def invented():
    """The explanation that the documentation shows."""

    async def made():
        log = MemoryStore().log()
        await explain_picture.write(log, "imports-7")
        return await explain_picture.explained(log, "imports-7")

    return asyncio.run(made())
