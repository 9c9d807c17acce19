"""Small sessions, said in few words, and what a request of theirs shows, line by line."""

import json

from sessions import Quarter, Session

from refold.log import Message
from refold.testing.wire import SPELLINGS, Answered, Asked, Call, Responded, Return
from refold.view.budget import Budget
from refold.view.profiles import Profile
from refold.view.view import View
from refold.view.view_input import ViewInput
from refold.wire import wire_for

_WIDEST = 96


def changed(profile, **groups):
    """The profile with some of its values changed, by group."""
    values = profile.model_dump()
    for name, value in groups.items():
        values[name] = {**values[name], **value} if isinstance(value, dict) else value
    return Profile.model_validate(values)


class Talk:
    """A session, and the view that one reader has of it."""

    def __init__(self, profile, *said, format="pydantic-ai", scope="/"):  # noqa: A002
        self.session = Session(format)
        self.profile = profile
        self.scope = scope
        self.view = None
        self._known = 0
        self.say(*said)

    def say(self, *said, scope="/"):
        for one in said:
            for message in SPELLINGS[self.session.format].spell(one):
                self.put(json.dumps(message, ensure_ascii=False).encode(), scope)

    def put(self, payload, scope="/"):
        self.session.add(Message(payload), scope)

    def inputs(self):
        read = self.session.visible(self.profile.window.read or None)
        return ViewInput.of(read, wire_for(self.session.format), Quarter(), self.scope)

    def request(self, window=1_000_000, **budget):
        """The next request, as a host that keeps its view open makes it."""
        if self.view is None:
            self.view = View(self.inputs(), self.profile)
        else:
            self.view.extend(self.session.entries[self._known :])
        self._known = self.session.head
        return self.view.request(Budget(window=window, **budget))

    def reset(self):
        """Read the session anew, as after a rewind."""
        assert self.view is not None
        self.view.reset(self.inputs())
        self._known = self.session.head

    def shapes(self, window=1_000_000, **budget):
        """The parts of the next request, message by message."""
        request = self.request(window, **budget)
        assert request.wire.problems(request.messages) == []
        return [request.wire.describe(one).shapes for one in request.messages]

    def texts(self, window=1_000_000, **budget):
        """What the parts of the next request say."""
        return [shape.text for one in self.shapes(window, **budget) for shape in one]

    def results(self, window=1_000_000):
        """What the tools returned, as the next request shows it."""
        shapes = (shape for one in self.shapes(window) for shape in one)
        return [shape.text for shape in shapes if shape.kind == "return"]


def lines(request):
    """A request as people read it: a line for each part, indented within its message."""
    found = []
    for payload in request.messages:
        role, shapes, _ = request.wire.describe(payload)
        for nth, shape in enumerate(shapes):
            who = f"{role:<9}" if nth == 0 else " " * 9
            tool = f" {shape.tool} {shape.call}" if shape.kind in {"call", "return"} else ""
            said = shape.text.replace("\n", "⏎")
            if len(said) > _WIDEST:
                said = f"{said[: _WIDEST // 2]} … {said[-_WIDEST // 2 :]} ({len(said)} characters)"
            found.append(f"{who} {shape.kind}{tool}: {said}")
    return found


def used(call, tool, result, text=None, **args):
    """A call of a tool, and its result."""
    return Responded(text, (Call(call, tool, args),)), Answered((Return(call, tool, result),))


def turn(prompt, *steps, reply="Done."):
    """A whole turn: the prompt, calls with their results, and the reply."""
    return Asked(prompt), *(one for step in steps for one in step), Responded(reply)
