"""Raw JSON in any spelling: values are found where they are, and nothing around them moves."""

import json

import pytest
from growth import check_growth
from hypothesis import assume, given
from hypothesis import strategies as st

from refold.errors import InvalidMessage
from refold.wire.editing import Tree, Turn, repeated, unpaired
from refold.wire.part import Shape
from refold.wire.splice import (
    Cut,
    compact_json,
    encoded,
    is_object,
    items,
    pairs,
    parsed,
    removed,
    root,
    spliced,
)

spaces = st.sampled_from(["", "", " ", "\n", "\t \r\n"])
strings = st.sampled_from(
    [
        '""',
        '"a"',
        '"\\u0061"',  # the same key, spelled otherwise
        '"\\"{[,:]}\\\\"',
        '"日本\\u65e5"',
        '"\\ud83d\\ude00 \\ud800"',
        '"\\/\\n\\t"',
        '"\x7f\u2028"',
    ]
)
scalars = strings | st.sampled_from(
    ["1.0", "1e5", "-0", "1E+400", "9" * 60, "12345678901234567890.10", "true", "false", "null"]
)


class Node:
    """A value as raw text, and the values in it with their keys."""

    def __init__(self, text, children=()):
        self.text = text
        self.children = list(children)

    def __repr__(self):
        return self.text


@st.composite
def compounds(draw, inner):
    named = draw(st.booleans())
    children, text = [], draw(spaces)
    for nth in range(draw(st.integers(0, 4))):
        child = draw(inner)
        key = draw(strings) if named else None
        comma = f"{draw(spaces)},{draw(spaces)}" if nth else ""
        label = f"{key}{draw(spaces)}:{draw(spaces)}" if named else ""
        text += comma + label + child.text
        children.append((key, child))
    text += draw(spaces)
    return Node(f"{{{text}}}" if named else f"[{text}]", children)


nodes = st.recursive(scalars.map(Node), compounds, max_leaves=12)
documents = st.builds(
    lambda node, a, b: (node, (a + node.text + b).encode()), nodes, spaces, spaces
)


def cut_out(raw, where):
    return raw[where.start : where.end].decode()


@given(documents)
def test_every_value_is_found_where_it_is(document):
    node, raw = document
    assert cut_out(raw, root(raw)) == node.text
    _same_below(node, raw, root(raw))


def _same_below(node, raw, where):
    if node.text[0] == "[":
        found = items(raw, where)
    elif node.text[0] == "{":
        listed = pairs(raw, where)
        assert [one.key for one in listed] == [json.loads(key) for key, _ in node.children]
        assert all(cut_out(raw, one.where).startswith('"') for one in listed)
        found = [one.value for one in listed]
    else:
        return
    assert [cut_out(raw, one) for one in found] == [child.text for _, child in node.children]
    for one, (_, child) in zip(found, node.children, strict=True):
        _same_below(child, raw, one)


@given(documents, st.data())
def test_a_new_value_leaves_all_around_it(document, data):
    node, raw = document
    path, text = (), node.text
    while node.children and data.draw(st.booleans()):
        nth = data.draw(st.integers(0, len(node.children) - 1))
        key = node.children[nth][0]
        if key is not None:
            key = json.loads(key)
            same = [at for at, (one, _) in enumerate(node.children) if json.loads(one) == key]
            nth = same[-1]
        node = node.children[nth][1]
        path, text = (*path, nth if key is None else key), node.text
    tree = Tree(raw)
    where = tree.at(path)
    assert cut_out(raw, where) == text
    new = spliced(raw, [tree.put(path, b'"NEW"')])
    assert new == raw[: where.start] + b'"NEW"' + raw[where.end :]
    assert spliced(raw, []) == raw
    assert spliced(raw, [Cut(where, text.encode())]) == raw


@given(documents, st.data())
def test_what_is_taken_out_takes_its_comma(document, data):
    node, raw = document
    assume(node.text[0] in "[{")
    gone = data.draw(st.sets(st.integers(0, 4)))
    named = node.text[0] == "{"
    listed = [one.where for one in pairs(raw, root(raw))] if named else items(raw, root(raw))
    new = spliced(raw, removed(listed, gone))
    json.loads(new)
    kept = [cut_out(raw, one) for nth, one in enumerate(listed) if nth not in gone]
    left = [one.where for one in pairs(new, root(new))] if named else items(new, root(new))
    assert [cut_out(new, one) for one in left] == kept


@given(documents)
def test_parsing_is_what_parsers_do(document):
    node, raw = document
    if node.text[0] == "{":
        assert parsed(raw) == json.loads(raw)
        assert is_object(node.text)
    else:
        assert not is_object(node.text)
        with pytest.raises(InvalidMessage, match="object"):
            parsed(raw)


def test_of_two_equal_keys_the_last_counts():
    raw = b'{"a":1, "\\u0061" :2,"b":3}'
    assert parsed(raw)["a"] == 2
    assert spliced(raw, [Tree(raw).put(("a",), b"4")]) == b'{"a":1, "\\u0061" :4,"b":3}'


def test_a_key_that_is_not_there_is_added():
    assert spliced(b"{ }", [Tree(b"{ }").put(("a",), b"1")]) == b'{ "a":1}'
    raw = b'{"x": {"y":1 } }'
    assert spliced(raw, [Tree(raw).put(("x", "z"), b"[]")]) == b'{"x": {"y":1 ,"z":[]} }'
    with pytest.raises(LookupError):
        Tree(raw).at(("z",))


@given(st.text(st.characters()))
def test_texts_become_strings(text):
    assert json.loads(compact_json(text)) == json.loads(encoded(text)) == text


def test_lone_surrogates_become_escapes():
    assert compact_json("\ud800é") == encoded("\ud800é") == b'"\\ud800\\u00e9"'


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbf{}",  # a mark of the byte order is no JSON
        '{"a":1}'.encode("utf-16"),
        '{"a":1}'.encode("utf-16-le"),
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\xff"}',
        b'{"a":1,}',
        b'{"a":"\x01"}',
        b'{"a":1}{}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":"\\ud800","b":' + b"[" * 300 + b"]" * 300 + b"}",
    ],
)
def test_what_is_no_json_is_refused(raw):
    with pytest.raises(InvalidMessage, match="not JSON"):
        parsed(raw)


@pytest.mark.parametrize("piece", [b"x", b'"', b'"x', b"\\", b"[", b'"\\', b"{]", b",", b" "])
@pytest.mark.parametrize("end", [b"", b'"', b"\\"])
def test_a_long_text_that_is_no_json_is_refused_at_once(piece, end):
    def refused(text):
        with pytest.raises(InvalidMessage):
            parsed(text + end)

    check_growth(refused, piece, 20_000)


def test_long_numbers_and_deep_values_are_read():
    assert parsed(b'{"a":' + b"9" * 5000 + b"}") == {"a": float("inf")}
    deep = b'{"a":' + b"[" * 150 + b"1.0" + b"]" * 150 + b',"b":"\\ud800"}'
    assert parsed(deep)["b"] == "\ud800"
    path = ("a", *[0] * 150)
    assert spliced(deep, [Tree(deep).put(path, b"2")]) == deep.replace(b"1.0", b"2")


def turn(at, *shapes, calls=False, patient=False):
    return Turn(at, calls, shapes, patient)


def call(name):
    return Shape("call", "{}", "t", name)


def answer(name):
    return Shape("return", "x", "t", name)


@pytest.mark.parametrize(
    ("turns", "at"),
    [
        ([turn(0, call("a"), calls=True), turn(1, answer("a"))], []),
        (
            [turn(0, call("a"), call("b"), calls=True), turn(1, answer("b")), turn(2, answer("a"))],
            [],
        ),
        ([turn(0, call("a"), calls=True)], [0]),
        ([turn(0, answer("a"))], [0]),
        ([turn(0, call("a"), calls=True), turn(1, answer("a")), turn(2, answer("a"))], [2]),
        ([turn(0, call("a"), call("a"), calls=True), turn(1, answer("a"))], [0]),
        ([turn(0, call("a"), calls=True), turn(1), turn(2, answer("a"))], [0, 2]),
        ([turn(0, call("a"), calls=True), turn(1, patient=True), turn(2, answer("a"))], []),
        ([turn(0, call("a"), calls=True), turn(1, calls=True), turn(2, answer("a"))], [0, 2]),
        ([turn(0, call("a"))], []),  # not the model's
    ],
)
def test_pairs(turns, at):
    assert [problem.at for problem in unpaired(turns)] == at


def test_ids_that_come_again_are_found():
    turns = [turn(at, call("a"), call("b"), calls=True) for at in range(2)]
    assert [problem.at for problem in repeated(turns)] == [1, 1]
    assert not list(repeated([turn(0, call("a"), call("a"), calls=True)]))
