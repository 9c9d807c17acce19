"""The user's messages as a fold quotes them: whole if they fit, else those that matter most.

What the user asked, allowed or forbade is only ever shown in the user's own words. Code chooses
among them, and only where they do not all fit. A wrong guess costs little: what it takes for
superseded is dropped first, not hidden, and a standing rule is never taken for superseded.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from refold.fold.material import Earlier, Passage
from refold.fold.summary import Directive, Summary, clipped, quoted
from refold.fold.values import assignments
from refold.view import Counter, Fold
from refold.wire.fingerprint import users_words

Rules = Callable[[str], list[str]]
"""Finds the rules in a text."""

_MAX_QUOTE = 40_000  # characters of a message: more than a fold shows, less than a pasted book
_MAX_STORED = 400_000  # characters of all messages that a fold stores
_MAX_RULES_TEXT = 4_000  # characters at each end of a message in which rules are looked for
_MAX_RULE = 300  # characters of a sentence; a longer one is a pasted text
_MAX_SETTING = 400  # characters of a message that says little more than a value
_MIN_CLIP = 100  # characters to which a message is clipped before others are dropped
_NOTE = 16  # tokens of the note on what is omitted
_MAX_CHARS_PER_TOKEN = 12  # what is longer does not fit, and need not be counted

_QUESTION_TOOLS: Final = frozenset({"AskUserQuestion", "request_user_input"})
"""Tools of Claude Code and Codex with which the user answers a question. An MCP server's tools have
a prefix, so none of them is one of these."""

_STANDING: Final = re.compile(
    r"\b(?:never|always|(?:do not|don't|dont)(?! (?:think|understand|know|see|believe|remember)\b)"
    r"|must(?:n't)?|only|avoid|prefer|make sure|remember to|from now on|without asking"
    r"|ask (?:me )?(?:first|before)|not allowed|you may|you can|keep"
    r"|niemals|nie|immer|nicht|kein\w*|nur|bitte keine|ab jetzt|muss|musst|darfst"
    r"|jamais|toujours|ne \w+ pas|seulement|il faut|évite\w*"
    r"|nunca|siempre|sempre|solo|só|jamás|debes?|deve|evita\w*|não"
    r"|mai|nooit|altijd|alleen|niet|никогда|всегда|нельзя|только|не)\b"
    r"|不要|不得|禁止|必须|总是|一定|只能|永远|しないで|必ず|常に|禁止|항상|절대",
    re.IGNORECASE,
)
_WEAK: Final = re.compile(
    r"\b(?:only|keep|you can|nicht|nur|muss|seulement|solo|só|não|mai|alleen|niet|только|не)\b",
    re.IGNORECASE,
)
"""Words of rules that stand in many other sentences too: they protect a message, and no more."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+")  # noqa: RUF001 - signs of other scripts


def directives(passages: Iterable[Passage], earlier: Iterable[Earlier]) -> list[Directive]:
    """All messages of the user, the oldest first, each once."""
    # A message that was unfolded is in the earlier summary too.
    before = (directive for fold in earlier for directive in fold.summary.directives)
    by_source = {directive.source: directive for directive in (*before, *_user_messages(passages))}
    return [by_source[source] for source in sorted(by_source)]


def storable(messages: Sequence[Directive]) -> list[Directive]:
    """The messages that a fold stores: far more than it shows, so the next one can choose again."""
    room = _MAX_STORED
    chosen: list[int] = []
    for index in reversed(least_missed([message.text for message in messages])):
        room -= len(messages[index].text)
        if room < 0:
            break
        chosen.append(index)
    return [messages[index] for index in sorted(chosen)]


def rules_in(text: str) -> list[str]:
    """The sentences of a message that sound like standing rules, such as "never push to main"."""
    # A rule stands before or behind what is pasted, hardly ever within it.
    ends = [text]
    if len(text) > 2 * _MAX_RULES_TEXT:
        ends = [text[:_MAX_RULES_TEXT], _SENTENCE_END.split(text[-_MAX_RULES_TEXT:], 1)[-1]]
    return [
        sentence
        for end in ends
        if _STANDING.search(end)
        for sentence in map(str.strip, _SENTENCE_END.split(end))
        if 0 < len(sentence) <= _MAX_RULE and _STANDING.search(sentence)
    ]


def least_missed(texts: Sequence[str], rules: Rules = rules_in) -> list[int]:
    """The messages in the order in which to drop them.

    First what was superseded, then the others, the oldest first; standing rules go last, and the
    newest message, which is what is being worked on.
    """
    last, gone = len(texts) - 1, superseded(texts, rules)

    def rank(index: int) -> tuple[int, int]:
        stays = index == last or (bool(rules(texts[index])) and index not in gone)
        return (2 if stays else 0 if index in gone else 1), index

    return sorted(range(len(texts)), key=rank)


def superseded(texts: Sequence[str], rules: Rules = rules_in) -> frozenset[int]:
    """The messages that a later one repeats, or whose values it replaces.

    A message with a standing rule, or with more to say than a value, is never superseded by one;
    the same words said again are the same rule.
    """
    later = newer_values(texts)
    repeated: set[str] = set()
    gone: set[int] = set()
    for index in range(len(texts) - 1, -1, -1):
        text = " ".join(texts[index].split()).casefold()
        replaced = later.get(index, {}).keys()
        if text in repeated or (
            replaced
            and len(text) <= _MAX_SETTING
            and replaced == assignments(texts[index]).keys()
            and not rules(texts[index])
        ):
            gone.add(index)
        repeated.add(text)
    return frozenset(gone)


def newer_values(texts: Sequence[str]) -> dict[int, dict[str, int]]:
    """For each message, the names that a later one gives another value, and which one that is."""
    newest: dict[str, tuple[str, int]] = {}
    replaced: dict[int, dict[str, int]] = {}
    for index in range(len(texts) - 1, -1, -1):
        for name, value in assignments(texts[index]).items():
            now, where = newest.setdefault(name, (value, index))
            if now != value:
                replaced.setdefault(index, {})[name] = where
    return replaced


def _user_messages(passages: Iterable[Passage]) -> Iterator[Directive]:
    questions: set[str | None] = set()
    for passage in passages:
        for index, shape in enumerate(passage.shapes):
            words = ""
            if shape.kind == "prompt":
                # What an agent's harness put into the user's message is not the user's.
                words = users_words(shape.text)
            elif shape.kind == "call" and shape.tool in _QUESTION_TOOLS:
                questions.add(shape.call)
            elif shape.kind == "return" and shape.call in questions:
                words = shape.text.strip()
            if words:
                yield Directive(clipped(words, _MAX_QUOTE), passage.ref(index), len(words))


class UserLines:
    """Quotes the user's messages, those with standing rules first, the newest last.

    Where they do not all fit, what was superseded goes first. Then long ones are clipped, then the
    oldest dropped; standing rules and the newest message stay longest.
    """

    def __init__(self, summary: Summary, values: Fold, counter: Counter) -> None:
        self._directives = summary.directives
        self._omitted = summary.omitted
        self._values = values
        self._counter = counter
        self._rules = cache(rules_in)  # each message is searched once, however often it is clipped
        texts = [directive.text for directive in self._directives]
        self._order = least_missed(texts, self._rules)[max(0, len(texts) - values.user_messages) :]
        self._gone = superseded(texts, self._rules)
        self._newer = newer_values(texts)
        self._costs: dict[tuple[int, int], int] = {}
        self._leads = [
            any(_STANDING.search(_WEAK.sub(" ", rule)) for rule in self._rules(text))
            for text in texts
        ]

    @property
    def tokens(self) -> int:
        """What all of them cost, as long as the profile allows."""
        return self._cost(0, self._values.user_clip)

    def within(self, room: int) -> list[str]:
        """The lines that fit so many tokens, with a note on what is omitted."""
        longest = self._values.user_clip
        everything = len(self._order) == len(self._directives) and not self._omitted
        if everything and self._fits(0, longest, room):
            return self._lines(self._order, longest)
        start, clip = self._chosen(room - _NOTE)
        lines = self._lines(self._order[start:], clip)
        omitted = len(self._directives) - len(lines) + self._omitted
        noun = "message" if omitted == 1 else "messages"
        return [f"[{omitted} earlier {noun} of the user omitted]", *lines] if omitted else lines

    def _chosen(self, room: int) -> tuple[int, int]:
        """From which message on they are shown, in the order of dropping, and how long each is."""
        longest, count = self._values.user_clip, len(self._order)
        stale = sum(index in self._gone for index in self._order)
        start = _first(lambda start: self._fits(start, longest, room), 0, stale)
        if start <= stale:
            return start, longest
        start = _first(lambda start: self._fits(start, _MIN_CLIP, room), stale, count)
        shorter = _first(
            lambda by: self._fits(start, longest - by, room), 0, max(0, longest - _MIN_CLIP)
        )
        return start, max(min(longest, _MIN_CLIP), longest - shorter)

    def _fits(self, start: int, clip: int, room: int) -> bool:
        if start >= len(self._order):
            return True
        texts = (self._directives[index].text for index in self._order[start:])
        chars = sum(min(len(text), clip) for text in texts)
        return chars <= self._values.user_chars and self._cost(start, clip) <= room

    def _cost(self, start: int, clip: int) -> int:
        if (start, clip) not in self._costs:
            text = "\n".join(self._lines(self._order[start:], clip))
            cost = 1 + self._values.max_tokens
            if len(text) <= _MAX_CHARS_PER_TOKEN * cost:
                cost = self._counter.text(text) if text else 0
            self._costs[start, clip] = cost
        return self._costs[start, clip]

    def _lines(self, order: Sequence[int], clip: int) -> list[str]:
        """Standing rules first, and each group with its newest last."""
        shown = sorted(order, key=lambda index: (not self._leads[index], index))
        return [self._quote(index, clip) for index in shown]

    def _quote(self, index: int, clip: int) -> str:
        directive = self._directives[index]
        text = _clipped(directive, clip, self._rules)
        cut = text != directive.text or len(directive.text) < directive.chars
        length = f", {directive.chars:,} characters in all" if cut else ""
        newer = "".join(
            f"; {name} has another value in entry {self._directives[later].source.seq}"
            for name, later in self._newer.get(index, {}).items()
        )
        return f"- (entry {directive.source.seq}{length}{newer}) {quoted(text)}"


def _clipped(directive: Directive, limit: int, rules: Callable[[str], list[str]]) -> str:
    """Both ends of a long message, and the standing rules that stand between them."""
    short = clipped(directive.text, limit)
    if short == directive.text.strip():
        return directive.text
    standing = " […] ".join(rule for rule in rules(directive.text) if rule not in short)
    if not standing:
        return short
    rest = limit - len(standing)
    if rest < _MIN_CLIP:
        return clipped(standing, limit)
    return f"{standing} […] {clipped(directive.text, rest)}"


def _first(holds: Callable[[int], bool], first: int, last: int) -> int:
    """The first number from which on it holds, up to `last`; one more if it does for none."""
    found = bisect_left(range(first, last + 1), 1, key=lambda number: int(holds(number)))
    return first + found
