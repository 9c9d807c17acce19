"""What room a conversation has: for the answer, after a refusal, and where the window is small."""

import asyncio
import json
from itertools import pairwise

import pytest
from gateway_world import served
from serve_process import serve_process

from refold.gateway.dialects import DIALECTS
from refold.gateway.sessions import SetupCache
from refold.models.catalog import ModelSettings
from refold.models.experience import Experiences, Setup
from refold.session.compaction import fold_values
from refold.testing.upstream import Refusal, Reply, ScriptedUpstream
from refold.view.profiles import BALANCED

CHAT = "/v1/chat/completions"
TURNS = 40
CHARS = 3.6
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"tool_{index}",
            "description": "Reads what is there, and says what it is. " * 10,
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
    for index in range(20)
]


class Provider:
    """Counts as it likes, and refuses what is too much for it."""

    def __init__(self, window, *, names_limit=True, counts_output=True):
        self.window, self.names_limit, self.counts_output = window, names_limit, counts_output
        self.refused, self.taken, self.requests = [], [], 0
        self.upstream = ScriptedUpstream(self.reply)

    def reply(self, got):
        self.requests += 1
        body = got.body
        sent = json.dumps([body["messages"], body.get("tools", [])])
        tokens = int(len(sent) / CHARS)
        wanted = body.get("max_tokens", 0) if self.counts_output else 0
        if tokens + wanted > self.window:
            self.refused.append(body)
            return Refusal(400, {"error": {"message": self.reason(tokens, wanted), **CODE}})
        self.taken.append(body["messages"])
        usage = (tokens, 20)
        return Reply(f"That was page {len(self.taken)}. " + "It is clear now. " * 12, usage=usage)

    def reason(self, tokens, wanted):
        if not self.names_limit:
            return "The prompt is too long."
        return (
            f"This model's maximum context length is {self.window} tokens. However, you requested "
            f"{tokens + wanted} tokens ({tokens} in the messages, {wanted} in the completion)."
        )

    @property
    def breaks(self):
        """Of the requests that were taken, those that changed what the one before had sent."""
        return [one != two[: len(one)] for one, two in pairwise(self.taken)]


CODE = {"code": "context_length_exceeded", "type": "invalid_request_error"}


async def converse(client, *, turns=TURNS, tools=(), after_turn=None, **more):
    """An agent that sends its whole history each time; the statuses that it gets."""
    messages = [{"role": "system", "content": "You read pages."}]
    statuses = []
    for turn in range(turns):
        words = f"Page {turn} of the book says this and that about chapter {turn}. " * 12
        messages.append({"role": "user", "content": words})
        body = {"model": "nobody-knows-it", "messages": messages, **more}
        answer = await client.post(CHAT, json={**body, "tools": [*tools]} if tools else body)
        statuses.append(answer.status_code)
        if answer.status_code == 200:
            messages.append(answer.json()["choices"][0]["message"])
        if after_turn:
            await after_turn(answer.headers["refold-session"])
    return statuses


def serving(base, folder, **settings):
    return serve_process(f"sqlite:///{folder}/test.db", base, folder, **settings)


@pytest.mark.parametrize("names_limit", [True, False], ids=["named", "not named"])
@pytest.mark.parametrize("max_tokens", [None, 2_500], ids=["", "output counted"])
async def test_what_a_refusal_taught_is_used_by_the_next_request(tmp_path, names_limit, max_tokens):
    """Nobody knows the model's window, so the first time it is met by a refusal."""
    provider = Provider(6_000, names_limit=names_limit)
    more = {"max_tokens": max_tokens} if max_tokens else {}
    async with (
        served(provider.upstream) as base,
        serving(base, tmp_path) as process,
        process.client() as client,
    ):
        statuses = await converse(client, **more)
    assert statuses == [200] * TURNS
    assert 1 <= len(provider.refused) <= 4


async def test_an_answer_longer_than_half_of_the_window_is_refused_with_the_providers_reason(
    tmp_path,
):
    provider = Provider(6_000)
    async with (
        served(provider.upstream) as base,
        serving(base, tmp_path) as process,
        process.client() as client,
    ):
        await converse(client, turns=12, max_tokens=1_000)
        before = provider.requests
        body = {"model": "nobody-knows-it", "max_tokens": 5_990}
        messages = [{"role": "user", "content": "Tell me all of it, please. " * 20}]
        answer = await client.post(CHAT, json={**body, "messages": messages})
    assert answer.status_code == 400
    assert "5990 in the completion" in answer.json()["error"]["message"]
    assert provider.requests == before + 1


@pytest.mark.parametrize("window", [8_000, 16_000])
async def test_at_a_small_window_the_prefix_is_not_broken_twice_in_a_row(tmp_path, window):
    """The tools alone take a good part of it."""
    provider = Provider(window, counts_output=True)
    settings = tmp_path / ".config" / "refold" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[models."nobody-knows-it"]\nwindow = {window}\n')
    turns = TURNS * window // 8_000

    async def think(session):
        """As long as a fold takes: one that is made late frees little, and another follows it."""
        async with asyncio.timeout(60):
            while (await client.get(f"/api/v1/sessions/{session}")).json()["under_way"]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async with (
        served(provider.upstream) as base,
        serving(base, tmp_path) as process,
        process.client() as client,
    ):
        statuses = await converse(
            client, turns=turns, tools=TOOLS, after_turn=think, max_tokens=window // 4
        )
    assert statuses == [200] * turns
    broken = provider.breaks
    assert any(broken)
    assert not any(one and two for one, two in pairwise(broken))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.8])
@pytest.mark.parametrize("window", [8_000, 32_000, 64_000])
def test_what_a_fold_keeps_and_shows_scales_with_the_room_that_tools_leave(window, share):
    definition = json.dumps(TOOLS[0])
    count = int(share * 0.75 * window * CHARS / len(definition))
    models = {"nobody-knows-it": ModelSettings(window=window)}
    setup = Setup.of("nobody-knows-it", tools=[definition] * count, models=models)
    room = setup.budget.limit - setup.budget.floor
    values = fold_values(setup)
    taken = values.keep.amount + values.keep.head_tokens + values.max_tokens
    assert taken <= max(room // 3, 400)  # a summary has 200 at least


@pytest.mark.parametrize(
    ("output", "reserve"), [(None, 4_000), (1_000, 1_000), (6_000, 6_000), (12_000, 8_000)]
)
def test_the_room_for_the_answer_is_what_was_asked_for_up_to_half_of_the_window(output, reserve):
    models = {"nobody-knows-it": ModelSettings(window=16_000, output=output)}
    assert Setup.of("nobody-knows-it", models=models).budget.reserve == reserve


def test_settings_for_a_name_without_its_provider_count_for_a_request_with_it():
    models = {"my-model": ModelSettings(window=9_000, input_price=1.0)}
    body = {"model": "openai:my-model", "messages": [{"role": "user", "content": "Hello."}]}
    parsed_request = DIALECTS[CHAT].read(json.dumps(body).encode())
    made = SetupCache(BALANCED, models).get(parsed_request, "default", Experiences())
    assert (made.budget.window, made.prices.input) == (9_000, 1.0)
