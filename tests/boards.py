"""Boards for the tests, and who reads sessions for them: a script where a model would be."""

import json

from refold.log import Author, Message, Opened
from refold.memory import Board, Branch
from refold.view.tokens import Estimate

BRANCH = Branch("0123456789ab main", "garden, main")
SESSION = "monday"


class Script:
    """Reads records as it was told to: makes these calls of the tool, or raises."""

    name = "script"
    counter = Estimate()

    def __init__(self, *turns, room=4_000):
        self.turns = [*turns]
        self.room = room
        self.records = []
        self.answers = []

    async def read(self, guard, record, board):
        assert "context_board" in guard
        self.records.append(record)
        for call in self.turns.pop(0) if self.turns else ():
            if isinstance(call, BaseException):
                raise call
            action, *given = call
            self.answers.append(getattr(board, action)(*given))
        return {"input": 10, "output": 1}


def board_on(log):
    """The board of the branch that the tests are on."""
    return Board(log, BRANCH)


async def said(log, *messages, session=SESSION, title=None):
    """A session in which this was said, by the user and the assistant in turn; its entries."""
    author = Author()
    try:
        head = await log.head(session)
    except Exception:  # noqa: BLE001 - it is begun here
        await log.append(
            session, [author.draft(Opened("openai-chat", "balanced", title))], expected=0
        )
        head = 1
    drafts = [author.draft(Message(json.dumps(one).encode())) for one in map(_message, messages)]
    await log.append(session, drafts, expected=head)
    return [*range(head + 1, head + 1 + len(drafts))]


def _message(one):
    if isinstance(one, dict):
        return one
    role, text = one
    return {"role": role, "content": text}


def user(text):
    return ("user", text)


def model(text):
    return ("assistant", text)


def called(tool, returned, call="c1"):
    """A call of the assistant and what it returned, as two messages."""
    made = {"id": call, "type": "function", "function": {"name": tool, "arguments": "{}"}}
    return (
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": call, "content": returned},
    )
