"""Cache marks are where the client has them, as far as what they are on is still sent."""

import json

import pytest
from amounts import amount, seeds

from refold.gateway.dialects import DIALECTS
from refold.gateway.dialects.cache_marks import CacheMark, marks_of, restore_marks, without_marks
from refold.testing.gateway import conversation, sent_again, source

NAMED = {dialect.name: dialect for dialect in DIALECTS.values()}
MARKING = ["openai-chat", "anthropic-messages"]
COUNT = amount(few=200, quick=200, ci=300, nightly=3_000, thorough=20_000)
SEEDS = seeds(COUNT)
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def compact(message):
    return json.dumps(message, separators=(",", ":")).encode()


def dumped(messages):
    return [compact(message) for message in messages]


def block(text, mark=None, **fields):
    item = {"type": "text", "text": text, **fields}
    return item if mark is None else {**item, "cache_control": mark}


def user(*blocks):
    return compact({"role": "user", "content": list(blocks)})


def said(text):
    return compact({"role": "user", "content": text})


def values(messages):
    return [mark.mark for message in messages for mark in marks_of(message)]


def marked_blocks(message):
    return len({mark.spot[0] for mark in marks_of(message)})


def bare(payload):
    """The message without marks, and its text as a list."""
    message = json.loads(without_marks(payload))
    if isinstance(text := message.get("content"), str) and text:
        message["content"] = [block(text)]
    return json.dumps(message)


def edited(name, random, client):
    """A view: messages are gone, have fewer blocks or other words, and some are inserted."""
    sent = []
    for at, again in enumerate(sent_again(name, random, client)):
        content = again.get("content")
        if isinstance(content, list) and len(content) > 1 and random.random() < 0.3:
            del content[random.randrange(len(content))]
        if isinstance(content, str) and random.random() < 0.3:
            again["content"] = content + " (cut)"
        if random.random() < 0.2:
            sent.append((None, {"role": "user", "content": "a summary"}))
        if random.random() < 0.7:
            sent.append((at, again))
    return [(at, compact(message)) for at, message in sent]


def in_order(some, all_of_them):
    left = iter(all_of_them)
    return all(one in left for one in some)


@pytest.mark.parametrize("name", MARKING)
def test_marks_are_placed_again_and_nothing_else_changes(name):
    moved = 0
    for seed in SEEDS:
        random = source(seed)
        messages = conversation(name, random)
        client, sent = dumped(messages), edited(name, random, messages)
        result = restore_marks(client, sent)
        assert [bare(one) for one in result] == [bare(one) for _, one in sent], seed
        assert in_order(values(result), values(client)), seed
        again = restore_marks(
            client, [(at, one) for (at, _), one in zip(sent, result, strict=True)]
        )
        assert again == result, seed
        moved += values(result) != values(client)
    assert moved


@pytest.mark.parametrize("name", MARKING)
def test_what_is_sent_whole_has_the_marks_that_it_had(name):
    for seed in SEEDS:
        random = source(seed)
        messages = conversation(name, random)
        client = dumped(messages)
        assert restore_marks(client, list(enumerate(client))) == client, seed
        logged = dumped(sent_again(name, random, messages))
        result = restore_marks(client, list(enumerate(logged)))
        assert in_order(values(result), values(client)), seed
        # Two marks on a result and on the only text in it are one where the text has no list.
        assert [marked_blocks(one) for one in result] == [marked_blocks(one) for one in client]


@pytest.mark.parametrize("name", MARKING)
def test_a_message_without_marks_says_the_same(name):
    for seed in SEEDS:
        for message in dumped(conversation(name, source(seed))):
            clean = without_marks(message)
            assert marks_of(clean) == ()
            same = NAMED[name].fingerprint
            assert same(clean).content == same(message).content
            if not marks_of(message):
                assert clean == message


def test_marks_are_found_on_blocks_and_inside_results():
    result = {"type": "tool_result", "tool_use_id": "1", "content": [block("a"), block("b", HOUR)]}
    message = user(result, block("c", MARK), block("d"))
    assert marks_of(message) == (CacheMark((0, 1), compact(HOUR)), CacheMark((1,), compact(MARK)))


def test_stale_marks_go_and_new_ones_come():
    client = [user(block("a")), said("b"), user(block("c", MARK))]
    logged = [user(block("a", MARK)), said("b"), said("c")]
    result = restore_marks(client, list(enumerate(logged)))
    assert [json.loads(one) for one in result] == [json.loads(one) for one in client]


def test_a_mark_whose_message_is_gone_goes_to_what_stands_before_it():
    client = [said("a"), user(block("b", HOUR)), said("c"), user(block("d", MARK))]
    summary = said("a and b")
    result = restore_marks(client, [(None, summary), (2, said("c")), (3, said("d"))])
    assert result == [user(block("a and b", HOUR)), said("c"), user(block("d", MARK))]


def test_a_mark_with_nothing_before_it_goes():
    client = [user(block("a", MARK)), said("b")]
    assert restore_marks(client, [(1, said("b"))]) == [said("b")]
    assert restore_marks(client, []) == []


def test_one_that_moves_takes_nobodys_place():
    client = [user(block("a", HOUR)), user(block("b", MARK))]
    assert restore_marks(client, [(0, client[0])]) == [client[0]]
    both = restore_marks(client, [(None, said("s"))])
    assert [json.loads(mark) for mark in values(both)] == [HOUR]


def test_one_that_moves_stays_behind_those_before_it():
    image = {"type": "image_url", "image_url": {"url": "https://example.com/1.png"}}
    client = [user(block("a"), {**image, "cache_control": MARK}), user(block("b", HOUR)), said("c")]
    assert restore_marks(client, [(0, client[0]), (2, said("c"))]) == [client[0], said("c")]


def test_a_block_that_is_gone_gives_its_mark_to_the_one_before_it():
    client = [said("0"), user(block("a"), block("b"), block("c", MARK), block("d"))]
    [_, result] = restore_marks(client, [(0, said("0")), (1, user(block("a"), block("d")))])
    assert [mark.spot for mark in marks_of(result)] == [(0,)]
    [first, result] = restore_marks(client, [(0, said("0")), (1, user(block("d")))])
    assert [mark.spot for mark in marks_of(first)] == [(0,)]
    assert marks_of(result) == ()


def test_a_block_with_other_words_keeps_its_mark():
    client = [user(block("a"), block("b", MARK), block("c"))]
    [result] = restore_marks(client, [(0, user(block("a"), block("b, cut"), block("c")))])
    assert [mark.spot for mark in marks_of(result)] == [(1,)]
    [result] = restore_marks(client, [(0, user(block("a"), block(""), block("c")))])
    assert [mark.spot for mark in marks_of(result)] == [(0,)]


def test_thoughts_and_calls_without_text_are_passed_over():
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    silent = compact({"role": "assistant", "content": [thought]})
    calling = compact({"role": "assistant", "content": None, "tool_calls": []})
    client = [said("a"), silent, calling, user(block("b", MARK))]
    result = restore_marks(client, [(0, said("a")), (1, silent), (2, calling)])
    assert [len(marks_of(one)) for one in result] == [1, 0, 0]
    assert result[1:] == [silent, calling]


def test_marks_inside_results_stay_there_or_go_to_the_result():
    def result(content):
        return user({"type": "tool_result", "tool_use_id": "1", "content": content})

    client = [result([block("a", MARK), block("b")])]
    assert restore_marks(client, [(0, result([block("a"), block("b")]))]) == client
    [short] = restore_marks(client, [(0, result("cut"))])
    assert [mark.spot for mark in marks_of(short)] == [(0,)]


def test_a_key_with_escapes_or_twice_is_a_mark_too():
    payload = (
        b'{"role":"user","content":[{"cache\\u005fcontrol":{"type":"ephemeral"},"type":"text",'
        b'"cache_control":{"type":"ephemeral"},"text":"a"}]}'
    )
    assert len(marks_of(payload)) == 1
    assert without_marks(payload) == b'{"role":"user","content":[{"type":"text","text":"a"}]}'


@pytest.mark.parametrize("content", [b"null", b"7", b"[7,null]", b'[{"type":{}}]', b"{}", b'""'])
def test_odd_contents_carry_no_marks(content):
    payload = b'{"role":"assistant","content":' + content + b"}"
    client = [payload, user(block("a", MARK))]
    assert restore_marks(client, [(0, payload), (None, payload)]) == [payload, payload]


def test_many_marks_cost_what_they_are_long():
    client = [user(*(block("a", MARK) for _ in range(2_000))) for _ in range(3)]
    sent = [(None, said("s")), (2, user(*(block("a") for _ in range(1_500))))]
    result = restore_marks(client, sent)
    assert [len(marks_of(one)) for one in result] == [1, 1_500]
