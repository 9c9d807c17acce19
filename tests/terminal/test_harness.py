"""The terminal and the provider that other tests are made with: each can be relied on."""

import re
import sys
from typing import Any

import httpx2
import pytest
from openai import APIConnectionError, AsyncOpenAI, BadRequestError
from terminal.pieces import Asked, Call, Cut, Gate, Thought, Used, overflow, own_words, summary
from terminal.provider import MODEL
from terminal.steady import steady

from refold.models.overflow import overflow_of
from refold.models.summarizer import INTERACTION

TMP = "/" + "tmp"  # in pieces: no file of the repository names such a path
ASK: Any = [{"role": "user", "content": "hello there"}]


def client(provider):
    return AsyncOpenAI(base_url=provider.url, api_key="none", max_retries=0)


async def chunks(provider, **more) -> Any:
    async with client(provider) as openai:
        stream = await openai.chat.completions.create(
            model=MODEL, messages=ASK, stream=True, stream_options={"include_usage": True}, **more
        )
        return [chunk async for chunk in stream]


def said(found):
    return "".join(one.choices[0].delta.content or "" for one in found if one.choices)


def test_keys_reach_a_program_and_its_screen_is_read(terminal):
    terminal.start([sys.executable, "-q"], columns=60, rows=10)
    terminal.wait_for(">>>")
    terminal.type("print('ä' * 3, end=';');")
    terminal.press("Enter")
    terminal.wait_for("äää;")
    terminal.type("'b'+'c';")
    terminal.wait_for("'b'+'c';")
    terminal.press("Enter")
    terminal.wait_for("'bc'")
    terminal.press("C-d")
    assert terminal.wait_until_ended() == 0
    assert not terminal.alive()


def test_the_environment_is_the_tests_own(terminal, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a person's own")
    terminal.start("env; tput colors; exec cat", columns=250, rows=60, env={"MORE": "given"})
    shown = terminal.wait_for("256")
    assert "OPENAI_API_KEY" not in shown
    assert f"HOME={terminal.home}" in shown
    assert f"REFOLD_STORE=sqlite:///{terminal.store}" in shown
    assert "MORE=given" in shown


def test_sizes_scrollback_and_a_sudden_end(terminal):
    terminal.start("seq 100; stty size; exec cat", columns=90, rows=20)
    assert "20 90" in terminal.wait_for("20 90")
    assert not re.search(r"^7$", terminal.screen(), re.MULTILINE)
    assert re.search(r"^7$", terminal.everything(), re.MULTILINE)
    terminal.resize(40, 12)
    terminal.wait_until_still()
    assert len(terminal.screen().splitlines()) <= 12
    assert terminal.alive()
    terminal.kill9()
    assert not terminal.alive()


def test_colors_pastes_and_the_cursor(terminal):
    terminal.start("printf '\\033[31mred\\033[0m\\n'; exec cat")
    assert "\x1b[31mred" in (terminal.wait_for("red") and terminal.screen(colors=True))
    terminal.paste("one\ntwo")
    terminal.wait_for(lambda screen: screen.count("one") == 2)  # it says a whole line again
    terminal.paste("; three")
    terminal.wait_for("; three")
    assert terminal.cursor()[0] == len("; three")


def test_what_never_comes_fails_with_the_screen(terminal):
    terminal.start("echo here; exec cat")
    terminal.wait_for("here")
    with pytest.raises(pytest.fail.Exception, match=r"never showed /there\?/:\n\| here"):
        terminal.wait_for(re.compile("there?"), timeout=0.2)
    with pytest.raises(pytest.fail.Exception, match="always showed 'here'"):
        terminal.wait_until_gone("here", timeout=0.2)


def test_two_terminals_share_a_home_and_nothing_else(terminals):
    first, second = terminals(), terminals()
    first.start("echo hello > note; exec cat")
    first.wait_until_still()
    second.start("cat note; exec cat")
    second.wait_for("hello")
    assert first.screen() == ""
    assert first.pid() != second.pid()


def test_no_tmux_is_a_reason_to_skip_unless_it_is_required(tmp_path, monkeypatch, terminals):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("REFOLD_TMUX", raising=False)
    with pytest.raises(pytest.skip.Exception):
        terminals()
    monkeypatch.setenv("REFOLD_TMUX", "required")
    with pytest.raises(pytest.fail.Exception):
        terminals()


def test_screens_of_two_runs_are_alike_when_steady():
    one = f"⠋ folding 1.2 s   │ 12:04 3 minutes ago {TMP}/a1/x.db\nid 0f3a9c2b  refold 0.1.0 s-1  │"
    two = (
        f"⠸ folding 350 ms │ 9:59  just now {TMP}/pytest-3/yy/x.db\n"
        "id 77ab01cdef refold 0.2.1 s-22 │"
    )
    assert steady(one, {"s-1": "NAME"}) == steady(two, {"s-22": "NAME", "s-2": "OTHER"})
    assert steady(one, {"s-1": "NAME"}) == (
        "<spin> folding <lasted> │ <time> <ago> <path>\nid <id> refold <version> NAME │"
    )
    assert steady("12 messages, 8,000 tokens, 45 %") == "12 messages, 8,000 tokens, 45 %"


async def test_an_answer_is_streamed_as_it_is_scripted(provider):
    provider.script += [
        [Thought("hm"), "Let me look.", Call("read", {"path": "a"}), Call("b", "{")]
    ]
    provider.start()
    found = await chunks(provider)
    assert said(found) == "Let me look."
    calls = [call for one in found if one.choices for call in one.choices[0].delta.tool_calls or ()]
    assert [call.function.name for call in calls if call.id] == ["read", "b"]
    first = "".join(call.function.arguments for call in calls if call.index == 0)
    assert first == '{"path": "a"}'
    assert found[-2].choices[0].finish_reason == "tool_calls"
    assert found[-1].usage.prompt_tokens > 0
    assert provider.received[0].answered


async def test_after_the_script_it_says_what_was_said(provider):
    provider.script += ["Only this."]
    provider.start()
    assert said(await chunks(provider)) == "Only this."
    assert said(await chunks(provider)) == "You said: hello there"
    async with client(provider) as openai:
        whole = await openai.chat.completions.create(model=MODEL, messages=ASK)
        assert whole.choices[0].message.content == "You said: hello there"
        assert [one.id async for one in await openai.models.list()] == [MODEL]
    assert [one.prompt for one in provider.asked] == ["hello there"] * 3


async def test_a_gate_holds_the_rest_of_an_answer(provider):
    provider.script += [["one ", Gate("middle"), "two"]]
    provider.start()
    async with client(provider) as openai:
        stream = await openai.chat.completions.create(model=MODEL, messages=ASK, stream=True)
        heard = ""
        async for one in stream:
            heard += (one.choices[0].delta.content or "") if one.choices else ""
            if heard == "one ":
                provider.wait_for_gate("middle")
                assert not provider.received[0].answered
                provider.release("middle")
        assert heard == "one two"


async def test_it_knows_that_who_asked_went_away(provider):
    provider.script += [["one ", Gate()]]
    provider.summary = [Gate("fold"), "never"]
    provider.start()
    async with client(provider) as openai:
        stream = await openai.chat.completions.create(model=MODEL, messages=ASK, stream=True)
        await anext(aiter(stream))
        await stream.close()
    with pytest.raises(httpx2.ReadTimeout):
        await asked_for_fold(provider, timeout=0.3)
    provider.wait_until(lambda: all(one.left for one in provider.received))
    assert [one.answered for one in provider.received] == [False, False]


async def asked_for_fold(provider, *, prompt="hello", timeout=30.0, **more):  # noqa: ASYNC109 - the client's
    body = {"model": MODEL, "messages": [{"role": "user", "content": prompt}], **more}
    headers = {"X-Interaction-Type": INTERACTION}
    async with httpx2.AsyncClient(timeout=timeout) as http:
        answer = await http.post(f"{provider.url}/chat/completions", json=body, headers=headers)
        return answer.json()["choices"][0]["message"]["content"]


async def test_refusals_and_lost_connections(provider):
    provider.script += [[overflow(8_000, 9_000)], ["one", Cut()], [Gate(), Cut()]]
    provider.start()
    with pytest.raises(BadRequestError) as refused:
        await chunks(provider)
    found = overflow_of(refused.value.status_code, refused.value.body)
    assert found is not None
    assert (found.limit, found.asked) == (8_000, 9_000)
    with pytest.raises(APIConnectionError):
        await chunks(provider)
    provider.release()
    async with client(provider) as openai:
        with pytest.raises(APIConnectionError):
            await openai.chat.completions.create(model=MODEL, messages=ASK)


async def test_what_was_sent_before_is_cached(provider):
    provider.script += ["a", "b", ["c", Used(7, 5, 3)]]
    provider.start()
    tools = [{"type": "function", "function": {"name": "t", "description": "x" * 8_000}}]
    first, second, third = [(await chunks(provider, tools=tools))[-1].usage for _ in range(3)]
    assert first.prompt_tokens == second.prompt_tokens > 2_000
    assert first.prompt_tokens_details.cached_tokens == 0
    assert second.prompt_tokens_details.cached_tokens >= 2_000 - 128
    assert (third.prompt_tokens, third.prompt_tokens_details.cached_tokens) == (7, 3)


async def test_a_fold_is_answered_beside_the_script(provider):
    provider.script += ["The first turn."]
    provider.summary = summary("Bicycles", "They fix bicycles")
    provider.start()
    prompt = "[entry 3] assistant\n| hm\n[entry 4] user\n| Fix my bicycle"
    form = {"type": "json_schema", "json_schema": {"name": "Form", "schema": {}}}
    told = await asked_for_fold(provider, prompt=prompt)
    assert told == "Title: Bicycles\n## Goal\n- They fix bicycles [4]"
    told = await asked_for_fold(provider, prompt=prompt, response_format=form)
    assert '"entries": [4]' in told
    assert "- Fix my bicycle [4]" in own_words(
        Asked({"messages": [{"role": "user", "content": prompt}]}, {})
    )
    assert len(provider.folds) == 2
    assert said(await chunks(provider)) == "The first turn."
