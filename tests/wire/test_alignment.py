"""What a history that somebody brings is to a log: found by ids, else by content, from the end."""

import json
from random import Random

import pytest

from refold.wire import OpenAIChat, PydanticAI
from refold.wire.alignment import Item, Piece, align, items_of
from refold.wire.fingerprint import prefix_keys


def item(word, source=0, *, gap=False, ids=()):
    """An item by its words: `u:` is a prompt, `c:` a call, all else an answer."""
    kind = {"u": "prompt", "c": "call", "r": "return"}.get(word[:1] * (word[1:2] == ":"), "text")
    return Item(source, kind, word.encode(), ids, gap)


def listed(words, first=0):
    return [item(word, first + nth) for nth, word in enumerate(words.split())]


def laid(incoming, log, **given):
    return align(listed(incoming), listed(log, 100), **given)


@pytest.mark.parametrize(
    ("log", "incoming", "verdict", "new", "fork"),
    [
        ("", "u:a", "continues", "u:a", None),
        ("u:a A", "u:a A u:b", "continues", "u:b", None),
        ("u:a A u:b B", "u:a A u:b B u:c", "continues", "u:c", None),
        ("u:a A u:b B", "u:b B u:c", "continues", "u:c", None),  # truncated
        ("u:a A u:b B u:c C", "u:a A u:c C u:d", "continues", "u:d", None),  # the middle left out
        ("u:a A u:b B", "u:a A u:x", "diverges", "u:x", 102),  # edited
        ("u:a A u:b B", "u:a A u:b", "diverges", "", 103),  # made again
        ("u:a A u:b B", "u:a A", "diverges", "", 102),  # older
        ("u:a A u:b B", "u:x X u:y", "unknown", "u:x X u:y", None),
        ("u:a A u:b B", "u:a A* u:b B u:c", "continues", "u:c", None),  # rewritten by the client
        ("u:a A u:b B", "u:a A u:b B* u:c", "diverges", "B* u:c", 103),
        ("u:+ A u:+ B", "u:+ A u:+ B u:+", "continues", "u:+", None),  # the same words again
        ("u:+ A u:+ B u:+ C", "u:+ A u:+ B u:+", "diverges", "", 105),
        ("u:a A u:b B u:c C", "u:a A u:a", "diverges", "u:a", 102),
        ("u:a c:1 r:1 A", "u:a c:1 r:1 A u:b", "continues", "u:b", None),
    ],
)
def test_what_is_known_what_is_new_and_where_it_diverges(log, incoming, verdict, new, fork):
    made = laid(incoming, log)
    assert made.verdict == verdict, made
    assert [one.digest.decode() for one in made.incoming[made.new :]] == new.split(), made
    assert (made.log[made.fork].source if made.fork is not None else None) == fork, made
    assert made.settled


def test_it_can_be_printed():
    assert str(laid("u:a A u:x", "u:a A u:b B")) == (
        "diverges: Message 1 of the history is entry 101 of the log, found by its content; "
        "entry 102 of the log follows, not the history.\n"
        "  message 0: prompt = entry 100\n"
        "  message 1: text = entry 101\n"
        "  message 2: prompt new"
    )
    assert "differs from the log" in str(laid("u:x A u:b B u:c", "u:a A u:b B"))
    assert str(laid("u:a", "")).startswith("continues: The history begins in an empty log.")
    assert str(laid("X", "u:a A")).startswith("unknown: No message")


def test_an_id_goes_before_content():
    log = [item("u:+", 1, ids=("m1",)), item("A", 2), item("u:+", 3, ids=("m2",)), item("A", 4)]
    again = align([*log[:2], item("u:+", 2, ids=("m2",))], log)
    assert (again.verdict, again.fork, again.new) == ("diverges", 3, 3)
    assert again.evidence == "ids"


def test_an_id_with_other_content_is_an_edit_of_that_message():
    log = [item("u:a", 1, ids=("m1",)), item("A", 2), item("u:b", 3, ids=("m2",)), item("B", 4)]
    first = align([item("u:x", 0, ids=("m1",))], log)
    assert (first.verdict, first.fork, first.new) == ("diverges", 0, 0)
    later = align([*log[:2], item("u:x", 2, ids=("m2",))], log)
    assert (later.verdict, later.fork, later.new) == ("diverges", 2, 2)


def test_a_call_that_the_client_wrote_differently_is_known_by_its_id():
    log = [item("u:a", 1), item("c:1", 2, ids=("call 1",)), item("r:1", 3), item("A", 4)]
    brought = [item("u:a", 0), item("c:one", 1, ids=("call 1",)), *log[2:], item("u:b", 4)]
    made = align(brought, log)
    assert (made.verdict, made.new, made.unknown) == ("continues", 4, ())
    assert made.pairs == ((0, 0), (1, 1), (2, 2), (3, 3))


def test_an_id_that_names_two_things_names_nothing():
    log = [
        one
        for nth in range(6)
        for one in (item(f"u:{nth}"), item(f"c:{nth}", ids=("call_0",)), item(f"A{nth}"))
    ]
    log = [one._replace(source=nth) for nth, one in enumerate(log)]
    made = align([*log, item("u:x")], log)
    assert (made.verdict, made.evidence, made.new) == ("continues", "content", len(log))


def test_what_lies_beneath_a_gap_is_not_held_against_a_history():
    log = [item("u:a", 1), item("u:h", 15, gap=True), item("H", 16)]
    made = laid("u:a A u:b B u:c C u:h H u:i", "")
    made = align(made.incoming, log)
    assert (made.verdict, made.unknown) == ("continues", ())
    assert dict(made.pairs) == {0: 0, 6: 1, 7: 2}


def test_where_it_leaves_the_log_within_a_gap_is_not_settled():
    log = [item("u:a", 1), item("u:h", 15, gap=True), item("H", 16)]
    assert not align(listed("u:a A u:x"), log).settled


def test_an_entry_is_kept_whole_or_not_at_all():
    log = [item("c:1", 5), item("r:1", 7), item("u:a", 7), item("A", 8)]
    made = align([item("c:1", 0), item("r:1", 1), item("u:b", 1)], log)
    assert (made.verdict, made.fork, made.new) == ("diverges", 1, 1)


def test_what_identifies_nothing_is_known_by_its_place():
    log = [item("u:a", 1), Item(2, "text", b""), item("A", 3)]
    made = align([item("u:a", 0), Item(1, "text", b""), item("A", 2)], log)
    assert made.pairs == ((0, 0), (1, 1), (2, 2))


def payload(kind, *parts):
    return json.dumps({"kind": kind, "parts": parts}).encode()


def pieces(*payloads):
    return [Piece(nth, one) for nth, one in enumerate(payloads)]


def digests(*payloads):
    return [(one.kind, one.digest) for one in items_of(PydanticAI(), pieces(*payloads))]


def text(content, **more):
    return {"part_kind": "text", "content": content, **more}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ([text("a b")], [text("a "), text("b")]),
        ([text("a b")], [text(" a\n b "), text("")]),
        ([text("a", id="x", provider_details={"y": 1})], [text("a")]),
        ([{"part_kind": "thinking", "content": "hm"}, text("a")], [text("a")]),
        (
            [{"part_kind": "tool-call", "tool_name": "t", "args": {"b": 1, "a": 2.0}}],
            [{"part_kind": "tool-call", "tool_name": "t", "args": '{"a":2,  "b": 1}'}],
        ),
        (
            [{"part_kind": "tool-call", "tool_name": "t", "args": None}],
            [{"part_kind": "tool-call", "tool_name": "t", "args": "{}"}],
        ),
    ],
)
def test_what_clients_drop_or_write_differently_makes_no_difference(one, two):
    assert digests(payload("response", *one)) == digests(payload("response", *two))


def test_texts_in_a_row_are_one_however_many_messages_they_come_in():
    apart = digests(payload("response", text("a")), payload("response", text("b")))
    assert apart == digests(payload("response", text("a"), text("b")))


def image(data):
    content = ["what is it?", {"kind": "binary", "media_type": "image/png", "data": data}]
    return payload("request", {"part_kind": "user-prompt", "content": content})


def test_another_picture_is_another_prompt():
    assert digests(image("AAAA")) == digests(image("AAAA"))
    assert digests(image("AAAA")) != digests(image("BBBB"))


def test_other_formats_have_items_too():
    said = b'{"role": "user", "content": "a"}'
    same = b'{"content": [{"type": "text", "text": "a"}], "role": "user"}'
    wire = OpenAIChat()
    one, two = items_of(wire, pieces(said)), items_of(wire, pieces(same))
    assert one[0].digest == two[0].digest


def test_a_prefix_has_a_key():
    keys = prefix_keys(b"seed", [b"a", b"", b"b"])
    assert keys[0] == keys[1] != keys[2]
    assert prefix_keys(b"seed", [b"a", b"b"])[1] == keys[2]


def test_any_tail_of_a_log_with_something_new_continues_it():
    random = Random(7)  # noqa: S311 - the same in every run
    for _ in range(300):
        turns = random.randint(1, 12)
        words = [
            word
            for nth in range(turns)
            for word in (f"u:{random.choice('ab')}", f"A{nth}{random.choice('xy')}")
        ]
        log = [item(word, 100 + nth) for nth, word in enumerate(words)]
        first = random.randrange(0, len(words), 2)
        new = [f"u:{random.choice('abc')}" for _ in range(random.randint(0, 2))]
        brought = [item(word, nth) for nth, word in enumerate([*words[first:], *new])]
        made = align(brought, log)
        assert made.verdict == "continues", made
        assert made.new == len(words) - first, made


def test_ten_thousand_that_say_the_same_are_aligned_in_a_few_comparisons():
    log = [item("u:go" if nth % 2 == 0 else "on", nth) for nth in range(10_000)]
    made = align([*log, item("u:go", 10_000)], log)
    assert made.verdict == "continues"
