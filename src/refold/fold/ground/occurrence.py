"""Whether what a claim names occurs in the log: whole, and written in any usual way."""

import re
from collections.abc import Callable
from string import digits
from typing import Final

from refold.fold.ground.disguise import folded
from refold.fold.ground.evidence import Evidence
from refold.fold.ground.names import NUMBER_WORDS, Named, Sort, named, spellings
from refold.log.text import words

_AT_LINE: Final = re.compile(r"(.+?[^\d:]):(\d+)(?:[:-]\d+)*$")
_BRACES: Final = re.compile(r"^(.*)\{([^{}]+)\}(.*)$")
_EITHER: Final = re.compile(r"[^\W\d_]+(?:/[^\W\d_]+)+")  # read/write
_HYPHENED: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_RANGE: Final = re.compile(r"^(.*?)(\d+)\s*[-–…]+\s*(.*?)(\d+)$")  # noqa: RUF001 - dashes
_ENTRY: Final = re.compile(
    r"(?:\b(?:entry|entries|seqs?|messages?|msgs?)\s*#?\s*(?:\d+\s*(?:,|and|to|-|–|&)\s*)*|\[\s*#?)$",  # noqa: RUF001
    re.IGNORECASE,
)
_MAX_RUN = 60  # words
_MIN_TAIL = 2  # steps of a path within a folder

_BEGINS = r"(?:(?<!\w)|(?<=\\[nrt]))(?<![^\W_]-)(?<![^\W_]--)"
"""No piece of a longer name before it; a line's end as programs write it is none."""
_ENDS = r"(?!\w)(?!-[^\W_])"
_NUMBER_BEGINS = r"(?<!\w)(?<!\d[.,])"
_MEASURE = r"(?:ms|s|secs?|m|mins?|h|hrs?|d|k|[kmgt]i?b|px|w|em|rem|pt)"
_BEHIND = r"(?:[ \u00a0\u202f]([^\W\d_]+))"
_NUMBER_ENDS = rf"(?![.,]\d)(?:({_MEASURE})|x|st|nd|rd|th)?(?![^\W_]){_BEHIND}?"
_HOME = r"(?:~/|(?<![^\s\"'`(\[=:,;|])/(?:(?:home|users)/[^/\s]+|root)/)"
_FORMS: Final = {"sec": "s", "secs": "s", "min": "m", "mins": "m", "hr": "h", "hrs": "h"}
_Fits = Callable[[str, str], bool]
"""Whether a number of the log is the claim's, given the unit on it and the word behind it."""


class Occurrence:
    """Looks names up in the log, each once."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._found: dict[tuple[Sort, str, str], bool] = {}

    def missing(self, text: str) -> list[Named]:
        """What a claim names and the log does not have."""
        found = named(text)
        listed = len({one.text for one in found if one.sort not in ("number", "quote")})
        return [one for one in found if not self._occurs(one, text, listed)]

    def _occurs(self, one: Named, text: str, listed: int) -> bool:
        if one.sort == "number" and one.text.isdecimal():
            of_entry = int(one.text) in self._evidence.seqs and _ENTRY.search(text[: one.start])
            if of_entry or int(one.text) == listed > 1:
                return True
        key = one.sort, one.text, _word_behind(one, text)
        if key not in self._found:
            self._found[key] = self._look_up(*key)
        return self._found[key]

    def _look_up(self, sort: Sort, text: str, behind: str) -> bool:
        if sort == "number":
            return self._number(text, behind)
        if sort == "quote":
            return all(map(self._run, re.split(r"…|\.{3,}|\[[^\]]*\]", text)))
        if sort == "link":
            return self._literal(text) or self._literal(text.rstrip("/"))
        return {"code": self._code, "path": self._path}.get(sort, self._name)(text)

    def _number(self, text: str, behind: str = "") -> bool:
        of_unit, of_any = _fits(text, behind), _fits("", "")
        for one in spellings(text):
            if self._literal(one, of_unit if one[-1].isdecimal() else of_any):
                return True
        value = int(text) if text.isdecimal() else -1
        word = NUMBER_WORDS[value] if value in range(len(NUMBER_WORDS)) else ""
        return value in self._evidence.counts or bool(self._evidence.holding([word]))

    def _code(self, text: str) -> bool:
        if text.startswith("~/") and len(text.split()) == 1:
            return self._path(text)  # its words alone may be those of another folder's
        if self._literal(text) or self._path(text) or self._run(text):
            return True
        inner = named(text) or [Named(0, 0, one, "name") for one in text.split()]
        if len(text.split()) == 1 and inner[0].text == text:
            return False
        # A command that was never run as it stands may be made of what is there together.
        keys = [word for word in words(folded(text)) if len(word) > 1]
        return (not keys or bool(self._evidence.holding(keys))) and all(
            one.sort == "code" or self._look_up(one.sort, one.text, _word_behind(one, text))
            for one in inner
        )

    def _path(self, text: str) -> bool:
        text = text.rstrip("/.,:") or text
        if at_line := _AT_LINE.match(text):
            return self._near(at_line[1], at_line[2])
        if braces := _BRACES.match(text):
            head, middle, tail = braces.groups()
            return all(self._path(f"{head}{one.strip()}{tail}") for one in middle.split(","))
        if any(self._literal(text.removeprefix(start)) for start in ("", "./", "../")):
            return True
        if "*" in text:
            return text[0] == "*" or self._path(text.partition("*")[0].rstrip("/"))
        if _EITHER.fullmatch(text):
            return all(self._evidence.holding(words(folded(one))) for one in text.split("/"))
        # An absolute path may be made of a folder and a path within it, both there.
        steps = text.split("/")
        return text.startswith(("/", "~/")) and any(
            self._literal("/".join(steps[:at])) and self._literal("/".join(steps[at:]), bare=True)
            for at in range(2, len(steps) - _MIN_TAIL + 1)
        )

    def _name(self, text: str) -> bool:
        bare = re.sub(r"\([^()]*\)$", "", text)
        if self._literal(text) or self._literal(bare):
            return True
        at_line, span = _AT_LINE.match(bare), _RANGE.match(bare)
        if at_line and self._near(at_line[1], at_line[2]):
            return True
        if span and span[1].rstrip() == span[3].rstrip():
            return all(self._literal(f"{span[1]}{number}") for number in (span[2], span[4]))
        parts = re.split(r"[=:,+&]|->|=>", bare)
        if len(parts) > 1 and all(re.search(r"\w", one) for one in parts):
            return all(self._literal(one) or self._number(one) for one in parts)
        return bool(_HYPHENED.fullmatch(bare)) and self._run(bare)

    def _near(self, name: str, number: str) -> bool:
        """Whether a name and the number of a line are in one part."""
        there = self._evidence.holding([*words(folded(name)), number])
        texts = [self._evidence.pieces[at].folded for at in there]
        return any(
            _stands(one, folded(name)) and _stands(one, number, _fits("", "")) for one in texts
        )

    def _literal(self, text: str, fits: _Fits | None = None, *, bare: bool = False) -> bool:
        name = folded(text).strip()
        run = words(name)[: 1 if fits else None]  # a unit may follow a number without a space
        pieces = self._evidence.pieces
        held = self._evidence.holding(run)
        return any(_stands(pieces[at].folded, name, fits, bare=bare) for at in held)

    def _run(self, text: str) -> bool:
        """Whether these words follow each other, whatever signs are between them."""
        run = words(folded(text))
        first, rest = run[:_MAX_RUN], run[_MAX_RUN:]
        unspaced = any(len(one) == 1 and ord(one) > 0x2E80 for one in first)  # noqa: PLR2004 - CJK
        body = rf"[\W_]{{{0 if unspaced else 1},12}}".join(map(re.escape, first))
        pattern = re.compile(body if unspaced else rf"(?<![^\W_]){body}(?![^\W_])")
        pieces = self._evidence.pieces
        found = any(pattern.search(pieces[at].folded) for at in self._evidence.holding(first))
        return (found or not run) and (not rest or self._run(" ".join(rest)))


def _stands(text: str, name: str, fits: _Fits | None = None, *, bare: bool = False) -> bool:
    """Whether a name stands in a text, and not as a piece of a longer one.

    A path below `~` may stand with the folder that this is short for. A `bare` path has no folder
    before it.
    """
    below_home = name.startswith("~/")
    literal = name.removeprefix("~/")
    if literal not in text:
        return False
    begins = (
        _NUMBER_BEGINS if fits else _HOME if below_home else _BEGINS if name[0].isalnum() else ""
    )
    ends = _NUMBER_ENDS if fits else _ENDS
    pattern = f"{'(?<!/)' if bare else ''}{begins}{re.escape(literal)}{ends}"
    matches = re.finditer(pattern, text)
    return any(fits is None or fits(one[1] or "", one[2] or "") for one in matches)


def _word_behind(one: Named, text: str) -> str:
    """The word behind a number of a claim, as in `41 seconds`."""
    behind = re.compile(_BEHIND).match(text, one.end)
    return folded(behind[1]) if behind and one.sort == "number" else ""


def _fits(number: str, behind: str) -> _Fits:
    """Which numbers of the log a claim's may be: 41 is not 41ms, and 41ms is not 41 rows."""
    unit = folded(number).lstrip(f"{digits}.,:")
    if re.fullmatch(_MEASURE, unit):
        return lambda glued, word: _same(unit, glued or word or unit)
    return lambda glued, _: not glued or _same(glued, behind)


def _same(unit: str, word: str) -> bool:
    """Whether a word is a unit, or what the unit is short for."""
    unit, short = _FORMS.get(unit, unit), _FORMS.get(word, word)
    if re.fullmatch(_MEASURE, short):
        return short == unit
    return bool(re.match(".*".join(unit), short))
