"""What real agents sent, replayed: one conversation is one session, and no request is refused.

Each request can be made again as it was sent, byte for byte, whatever the agent rewrites.

`python -m benchmarks.coding_agents --record tests/gateway/agent_recordings` records them anew: real
agents from npm, through a gateway. Their texts are shortened; what they rewrite is not.
"""

import json
from pathlib import Path

import pytest
from coding_agents import bench

from refold.gateway.sent_body import sent_body
from refold.log import CODEC, FoldCompleted
from refold.testing.upstream import Call, Reply

RECORDINGS = sorted(Path(__file__).with_name("agent_recordings").glob("*.json"))
WINDOWS = {"large": 200_000, "small": 6_000}


def requests_of(recording):
    """Each request whole again, with its kind and its answer."""
    before = {}
    for one in recording["requests"]:
        messages = [*before.get(one["kind"], [])[: one["same"]], *one["more"]]
        before[one["kind"]] = messages
        calls = [
            Call(call["id"], call["tool"], call["arguments"]) for call in one["answer"]["calls"]
        ]
        answer = Reply(
            one["answer"]["text"],
            tuple(calls),
            thought=one["answer"]["thought"],
            number=one["answer"]["number"],
        )
        body = {**recording["bodies"][one["body"]], one["messages"]: messages}
        yield one["kind"], one["path"], body, answer


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.stem)
async def test_one_conversation_is_one_session(file, window):
    recording = json.loads(file.read_text(encoding="utf-8"))
    given = []
    models = {one["model"] for one in recording["bodies"]}
    async with bench(lambda _: given[-1], window=WINDOWS[window], models=models) as b:
        sessions, records = {"main": [], "beside": []}, []
        for kind, path, body, answer in requests_of(recording):
            given.append(answer)
            response = await b.client.post(path, json=body)
            assert response.status_code == 200, response.text
            sessions[kind].append(response.headers["refold-session"])
            records.append(response.headers["refold-request"].rpartition(":"))
        assert b.faults == []
        assert len(set(sessions["main"])) == 1
        assert not set(sessions["main"]) & set(sessions["beside"])
        entries = await b.store.log().read(sessions["main"][0])
        folds = [one for one in entries if isinstance(CODEC.decode(one), FoldCompleted)]
        assert bool(folds) is (window == "small")
        made = [await sent_body(b.store.log(), session, int(seq)) for session, _, seq in records]
        assert {each.state for each in made} == {"exact"}


def test_each_agent_has_a_recording():
    names = {file.stem for file in RECORDINGS}
    assert names == {"claude-code", "codex", "copilot", "opencode", "pi"}
    for file in RECORDINGS:
        text = file.read_text(encoding="utf-8")
        assert "127.0.0.1" not in text
        assert len(text) < 400_000
