"""Sessions that the lab can replay: files of an export, and the same in a log."""

import json

from refold.lab.background import Assignment
from refold.lab.report import CaseOptions
from refold.log import Author, Message, Opened
from refold.view.profiles import BALANCED

FORMAT = "openai-chat"


def messages(turns=12, work="work"):
    """A talk that uses the names of its beginning again."""
    for turn in range(turns):
        call = {"name": "read", "arguments": json.dumps({"path": f"src/part_{turn}.py"})}
        calls = [{"id": f"c{turn}", "type": "function", "function": call}]
        yield {"role": "user", "content": f"What does part {turn} do?"}
        yield {"role": "assistant", "content": None, "tool_calls": calls}
        result = f"def {work}_{turn}(): ...\n" * 250
        yield {"role": "tool", "tool_call_id": f"c{turn}", "content": result}
        yield {"role": "assistant", "content": f"It works, like src/part_{turn // 3}.py does."}


def exported(turns=12, model=""):
    """The lines of a session's export."""
    bodies = [("session", {"format": FORMAT, "profile": "balanced"})]
    for message in messages(turns):
        if model and message["role"] == "assistant":
            bodies.append(("request", {"model": model}))
        bodies.append(("message", message))
    return tuple(
        b"%s\n" % json.dumps({"seq": seq, "kind": kind, "version": 1, "body": body}).encode()
        for seq, (kind, body) in enumerate(bodies, 1)
    )


def assigned(*sessions):
    options = CaseOptions(fixed=None, lifetime=300)
    return Assignment(sessions, (BALANCED,), options, 4_000)


async def stored(log, name, turns=12, **how):
    """The same session in a log."""
    values = [Opened(FORMAT, "balanced")]
    values += [Message(json.dumps(each).encode()) for each in messages(turns, **how)]
    await log.append(name, [Author().draft(each) for each in values], expected=0)
