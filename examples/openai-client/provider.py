"""Plays the provider, so that the example needs no key. Leave it out to use a real one."""

import uvicorn

from refold.testing.upstream import Got, Reply, ScriptedUpstream


def answer(got: Got) -> Reply:
    messages = got.body["messages"]
    return Reply(f"I was sent {len(messages)} messages; the first is: {messages[0]['content']}")


uvicorn.run(ScriptedUpstream(answer), port=8080, log_level="error")
