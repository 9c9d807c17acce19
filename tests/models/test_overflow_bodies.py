"""What providers say when a request is too long, as it was seen in the wild."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overflow_rows import NEAR_MISSES, OVERFLOWS, named, parsed, row_of, said_in

from refold.models import overflow
from refold.models.overflow import (
    CODES,
    OTHER_CODES,
    OTHER_SENTENCES,
    SENTENCES,
    Overflow,
    overflow_of,
    refused_otherwise,
)

LONG_PROMPT = {"message": "prompt is too long: 5 tokens > 3 maximum"}


# What is known


def test_the_bodies_are_of_many_providers_and_each_says_where_it_was_seen():
    rows = [*OVERFLOWS, *NEAR_MISSES]
    assert len({row["name"] for row in rows}) == len(rows)
    assert all(row["source"].startswith(("https://", "seen: ")) for row in rows)
    assert len({row["provider"] for row in OVERFLOWS}) >= 25


def test_no_sentence_and_no_code_is_known_that_was_never_seen():
    seen = [overflow._Refusal(row["body"], "") for row in OVERFLOWS]
    texts = [text for told in seen for text in told.texts]
    first = [
        next((said.mark for said in SENTENCES if overflow._pattern(said.mark).search(text)), None)
        for text in texts
    ]
    assert {said.mark for said in SENTENCES} - set(first) == set()
    assert CODES - {code for told in seen for code in told.codes} == set()


def test_no_other_reason_is_known_that_was_never_seen():
    seen = [overflow._Refusal(row["body"], "") for row in NEAR_MISSES]
    text = "\n".join(text for told in seen for text in told.texts)
    assert all(re.search(other, text) for other in OTHER_SENTENCES)
    assert {code for told in seen for code in told.codes} >= OTHER_CODES


# From a body


@named(OVERFLOWS)
def test_an_overflow_is_recognised_with_what_it_says_of_the_limit(row):
    for body in (row["body"], row["body"].encode(), parsed(row)):
        assert overflow_of(row["status"], body) == said_in(row)
    assert not refused_otherwise(row["status"], row["body"])


@named([row for row in OVERFLOWS if row["status"] != 413])
def test_an_overflow_is_recognised_without_its_status(row):
    assert overflow_of(None, row["body"]) == said_in(row)
    assert overflow_of(None, None, row["body"]) == said_in(row)


def test_a_code_is_enough():
    for code in CODES:
        for body in ({"code": code}, {"error": {"type": code, "message": "No."}}):
            assert overflow_of(None, body) == Overflow()
    assert overflow_of(None, {"code": "invalid_request_error"}) is None
    for name in ("anthropic-request-too-large", "glean"):
        assert overflow_of(None, row_of(name)["body"]) == Overflow()


@named(NEAR_MISSES)
def test_what_only_sounds_like_an_overflow_is_none(row):
    for status in (row["status"], 400, None):
        assert overflow_of(status, row["body"]) is None
        assert overflow_of(status, parsed(row)) is None


@pytest.mark.parametrize("mark", [",", "_", "'", "\u00a0", "\u202f"])
@named([row for row in OVERFLOWS if row["body"]])
def test_marks_between_thousands_change_nothing(row, mark):
    def marked(text):
        return re.sub(r"\b[1-9]\d{3,}\b", lambda n: f"{int(n[0]):,}".replace(",", mark), text)

    told = overflow._Refusal(row["body"], "")
    words = [overflow._match_sentence(marked(text)) for text in told.texts]
    assert words == [overflow._match_sentence(text) for text in told.texts]


def test_the_status_413_alone_is_an_overflow():
    for body in (None, "", b"", "<html>413 Request Entity Too Large</html>", {}, []):
        assert overflow_of(413, body) == Overflow()
        assert overflow_of(400, body) is None
    assert refused_otherwise(413, {"code": "rate_limit_exceeded"})
    assert overflow_of(413, {"code": "rate_limit_exceeded"}) is None


@pytest.mark.parametrize(
    "words", ["Rate limit reached.", "Limit 6000 per minute.", "Over quota.", "Not enough credits."]
)
def test_another_reason_counts_more_than_the_status_413_and_the_sentence(words):
    assert overflow_of(413, words) is None
    assert overflow_of(400, {"message": f"{LONG_PROMPT['message']} {words}"}) is None


def test_quotation_marks_may_be_curly():
    said = "The input (5 tokens) is longer than the model\u2019s context length (3 tokens)."
    assert overflow_of(400, said) == Overflow(3, 5)


@pytest.mark.parametrize("status", [401, 402, 403, 404, 408, 409, 429, 529])
def test_a_status_with_another_meaning_is_believed(status):
    assert overflow_of(status, LONG_PROMPT) is None
    assert overflow_of(400, LONG_PROMPT) == Overflow(3, 5)


def test_a_body_that_quotes_the_request_is_not_taken_at_its_word():
    quoted = {"messages": [{"role": "user", "content": LONG_PROMPT["message"]}]}
    detail = {"type": "missing", "loc": ["body", "model"], "msg": "Field required"}
    assert overflow_of(422, {"detail": [{**detail, "input": quoted}]}) is None
    assert overflow_of(422, json.dumps({"detail": [{**detail, "input": quoted}]})) is None


def test_fields_count_more_than_the_sentence():
    body = {"error": {**LONG_PROMPT, "n_ctx": 2048, "n_prompt_tokens": 3220}}
    assert overflow_of(400, body) == Overflow(2048, 3220)
    odd = {"error": {**LONG_PROMPT, "n_ctx": True, "n_prompt_tokens": -1}}
    assert overflow_of(400, odd) == Overflow(3, 5)
    assert overflow_of(400, {"n_ctx": 2048, "message": "Bad schema."}) is None


@pytest.mark.parametrize("number", ["0", "9" * 13, "9" * 5_000])
def test_a_number_that_cannot_be_one_of_tokens_is_left_out(number):
    assert overflow_of(400, f"prompt is too long: {number} tokens > {number} maximum") == Overflow()


# Bounded


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "1" * 1_000_000,
        "[" * 1_000_000,
        '{"a":' * 200_000,
        " " * 1_000_000,
        "too many tokens: " * 60_000,
        "input token count (1) " * 50_000,
        "exceed context limit: 1 + " * 40_000,
    ],
    ids=["letters", "digits", "brackets", "objects", "spaces", "cohere", "google", "anthropic"],
)
def test_a_megabyte_does_not_stall_it(text):
    for body in (text, text.encode(), {"error": {"message": text}}, {"errors": [text] * 100}):
        assert overflow_of(400, body) is None


def test_of_a_long_text_only_the_beginning_is_read():
    late = " ".join(["word"] * 10_000)
    assert overflow_of(400, f"{LONG_PROMPT['message']} {late}") == Overflow(3, 5)
    assert overflow_of(400, f"{late} {LONG_PROMPT['message']}") is None


def test_a_long_body_that_is_json_is_read_whole(monkeypatch):
    body = json.dumps({"request": "word " * 100_000, "error": LONG_PROMPT})
    assert overflow_of(400, body) == Overflow(3, 5)
    monkeypatch.setattr(overflow, "_MAX_JSON", len(body) - 1)
    assert overflow_of(400, body) is None


def test_a_body_that_holds_itself_is_read_once():
    body: dict[str, Any] = {"message": "no"}
    body["error"] = body
    assert overflow_of(400, body) is None
    listed: list[Any] = []
    listed.append(listed)
    assert overflow_of(400, listed) is None


KEYS = st.sampled_from(["message", "error", "detail", "code", "type", "n_ctx", "raw"]) | st.text()
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=50)
)
GARBAGE = st.recursive(
    SCALARS | st.builds(object),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(KEYS | st.integers(), inner)
        | st.dictionaries(KEYS, st.text() | st.integers()).map(json.dumps)
    ),
    max_leaves=20,
)


@given(st.none() | st.integers().filter(lambda status: status != 413), GARBAGE, st.text())
def test_garbage_never_raises_and_is_never_an_overflow(status, body, text):
    assert overflow_of(status, body, text) is None


@given(st.sampled_from(OVERFLOWS), st.text(), st.text(), st.data())
def test_an_overflow_within_garbage_never_raises(row, before, after, data):
    cut = data.draw(st.integers(0, len(row["body"])))
    overflow_of(row["status"], before + row["body"][:cut] + after)
    overflow_of(row["status"], [before, {"error": row["body"][cut:]}, after])
