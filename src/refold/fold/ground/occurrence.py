"""Whether what a claim names occurs in the material: whole, and written in any usual way."""

import re
from collections.abc import Callable, Sequence
from string import digits

from refold.fold.ground.disguise import folded
from refold.fold.ground.evidence import Evidence
from refold.fold.ground.words import NUMBER_WORDS, Named, content, named, spellings
from refold.log.text import words

_LINE = re.compile(r"(.+?[^\d:]):(\d+)(?:[:-]\d+)*$")
_BRACES = re.compile(r"^(.*)\{([^{}]+)\}(.*)$")
_GAP = r"[\W_]{1,12}"
_LONGEST_RUN = 60
_ENTRY = re.compile(
    r"(?:\b(?:entry|entries|seqs?|messages?|msgs?)\s*#?\s*(?:\d+\s*(?:,|and|to|-|–|&)\s*)*|\[\s*#?)$",  # noqa: RUF001
    re.IGNORECASE,
)
_RANGE = re.compile(r"^(.*?)(\d+)\s*[-–…]+\s*(.*?)(\d+)$")  # noqa: RUF001
_LEAST_TAIL = 2
_HOME = r"(?<![^\s\"'`(\[=:,;|])/(?:(?:home|users)/[^/\s]+|root)/"
_MEASURE = r"(?:ms|s|secs?|m|mins?|h|hrs?|d|k|[kmgt]i?b|px|w|em|rem|pt)"
_BEHIND = r"(?:[ \u00a0\u202f]([^\W\d_]+))"
_AFTER_NUMBER = re.compile(rf"(?![.,]\d)(?:({_MEASURE})|x|st|nd|rd|th)?(?![^\W_]){_BEHIND}?")
_FORMS = {"sec": "s", "secs": "s", "min": "m", "mins": "m", "hr": "h", "hrs": "h"}
_Fits = Callable[[str, str], bool]
"""Whether a number of the log is the claim's, given the unit on it and the word behind it."""


class Occurrence:
    """Looks names up in the material, each once."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._found: dict[tuple[str, str, str], bool] = {}

    def missing(self, text: str) -> tuple[list[Named], int]:
        """What a claim names and the material does not have, and how many things it names."""
        found = named(text)
        listed = len({one.text for one in found if one.sort not in ("number", "quote")})
        gone = [one for one in found if not self._there(one, text, listed)]
        lost = {one.text for one in gone}
        return gone, len({one.text for one in found if one.sort != "caps" or one.text in lost})

    def _there(self, one: Named, text: str, listed: int) -> bool:
        if one.sort == "number" and self._is_entry(one, text):
            return True
        if one.sort == "number" and one.text == str(listed) and listed > 1:
            return True
        key = one.sort, one.text, _beside(one, text)
        if key not in self._found:
            self._found[key] = self._looked_up(one, key[2])
        return self._found[key]

    def _is_entry(self, one: Named, text: str) -> bool:
        if not one.text.isdecimal() or int(one.text) not in self._evidence.seqs:
            return False
        return bool(_ENTRY.search(text[: one.start]))

    def _looked_up(self, one: Named, beside: str) -> bool:
        match one.sort:
            case "number":
                return self._number(one.text, beside)
            case "quote":
                return self._quote(one.text)
            case "code":
                return self._code(one.text)
            case "path":
                return self._path(one.text)
            case "link":
                return self._literal(one.text) or self._literal(one.text.rstrip("/"))
            case _:
                return self._name(one.text)

    def _number(self, text: str, beside: str = "") -> bool:
        fits = _fits(text, beside)
        for one in spellings(text):
            if self._literal(one, fits=fits if one[-1].isdecimal() else _fits("", "")):
                return True
        if not text.isdecimal():
            return False
        value = int(text)
        if value < len(NUMBER_WORDS) and self._evidence.holding([NUMBER_WORDS[value]]):
            return True
        return value in self._evidence.counts

    def _quote(self, text: str) -> bool:
        parts = [one for one in re.split(r"…|\.{3,}|\[[^\]]*\]", text) if words(one)]
        return all(map(self._run, parts))

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
        together = not keys or bool(self._evidence.holding(keys))
        return together and all(
            one.sort == "code" or self._looked_up(one, _beside(one, text)) for one in inner
        )

    def _path(self, text: str) -> bool:
        text = text.rstrip("/.,:") or text
        at_line = _LINE.match(text)
        if at_line:
            return self._near(at_line.group(1), at_line.group(2))
        braces = _BRACES.match(text)
        if braces:
            head, middle, tail = braces.groups()
            return all(self._path(f"{head}{one.strip()}{tail}") for one in middle.split(","))
        for start in ("", "./", "../"):
            if text.startswith(start) and self._literal(text.removeprefix(start)):
                return True
        if "*" in text:
            return self._path(text.partition("*")[0].rstrip("/")) if text[0] != "*" else True
        return self._joined(text) or self._either(text) or self._at_home(text)

    def _joined(self, path: str) -> bool:
        """An absolute path that is made of a folder and a path within it, both there."""
        steps = path.split("/")
        return path.startswith(("/", "~/")) and any(
            self._literal("/".join(steps[:at])) and self._literal("/".join(steps[at:]), bare=True)
            for at in range(2, len(steps) - _LEAST_TAIL + 1)
        )

    def _at_home(self, path: str) -> bool:
        name, pieces = folded(path), self._evidence.pieces
        return any(_home(pieces[at].text, name) for at in self._evidence.holding(words(name)))

    def _either(self, text: str) -> bool:
        """Words with a stroke between them, such as read/write, of which each is there."""
        if not re.fullmatch(r"[^\W\d_]+(?:/[^\W\d_]+)+", text):
            return False
        return all(self._occurs(one) for one in text.split("/"))

    def _name(self, text: str) -> bool:
        bare = re.sub(r"\([^()]*\)$", "", text)
        at_line = _LINE.match(bare)
        if self._literal(text) or (bare != text and self._literal(bare)):
            return True
        if at_line and self._near(at_line.group(1), at_line.group(2)):
            return True
        span = _RANGE.match(bare)
        if span and span.group(1).rstrip() == span.group(3).rstrip():
            head, first, _, last = span.groups()
            return self._literal(f"{head}{first}") and self._literal(f"{head}{last}")
        parts = re.split(r"[=:,+&]|->|=>", bare)
        if len(parts) > 1 and all(re.search(r"\w", one) for one in parts):
            return all(self._literal(one) or self._number(one) for one in parts)
        hyphened = re.fullmatch(r"[^\W\d_]+(?:-[^\W\d_]+)+", bare)
        return bool(hyphened) and self._run(bare)

    def _occurs(self, word: str) -> bool:
        keys = content(word)
        return not keys or all(map(self._evidence.has_key, keys))

    def _near(self, name: str, number: str) -> bool:
        name = folded(name)
        there = self._evidence.holding([*words(name), number])
        return any(
            (_whole(text, name) or _home(text, name)) and _whole(text, number, fits=_fits("", ""))
            for text in (self._evidence.pieces[at].text for at in there)
        )

    def _literal(self, text: str, *, fits: _Fits | None = None, bare: bool = False) -> bool:
        name = folded(text).strip()
        run = words(name)
        if not run:
            return False
        held = self._evidence.holding(run if fits is None else run[:1])
        pieces = self._evidence.pieces
        return any(_whole(pieces[at].text, name, fits=fits, bare=bare) for at in held)

    def _run(self, text: str) -> bool:
        run = words(folded(text))
        if not run:
            return True
        if len(run) > _LONGEST_RUN:
            return all(
                self._run(" ".join(run[at : at + _LONGEST_RUN]))
                for at in range(0, len(run), _LONGEST_RUN)
            )
        gap = _GAP if not _unspaced(run) else r"[\W_]{0,12}"
        pattern = re.compile(rf"(?<![^\W_]){gap.join(map(re.escape, run))}(?![^\W_])")
        if _unspaced(run):
            pattern = re.compile(gap.join(map(re.escape, run)))
        pieces = self._evidence.pieces
        return any(pattern.search(pieces[at].text) for at in self._evidence.holding(run))


def _unspaced(run: Sequence[str]) -> bool:
    return any(len(one) == 1 and ord(one) > 0x2E80 for one in run)  # noqa: PLR2004 - CJK


def _beside(one: Named, text: str) -> str:
    """The word behind a number of a claim, as in `41 seconds`."""
    behind = re.compile(_BEHIND).match(text, one.end)
    return folded(behind.group(1)) if behind and one.sort == "number" else ""


def _fits(number: str, beside: str) -> _Fits:
    """Which numbers of the log a claim's may be: 41 is not 41ms, and 41ms is not 41 rows."""
    unit = folded(number).lstrip(f"{digits}.,:")
    if re.fullmatch(_MEASURE, unit):
        return lambda glued, word: _same(unit, glued or word) or not (glued or word)
    return lambda glued, _: not glued or _same(glued, beside)


def _same(unit: str, word: str) -> bool:
    """Whether a word is a unit, or what the unit is short for."""
    unit, short = _FORMS.get(unit, unit), _FORMS.get(word, word)
    if re.fullmatch(_MEASURE, short):
        return short == unit
    return bool(re.match(".*".join(unit), short))


def _whole(text: str, name: str, *, fits: _Fits | None = None, bare: bool = False) -> bool:
    """Whether a name stands in a text, and not as a piece of a longer one."""
    at = text.find(name)
    while at >= 0:
        if _begins(text, at, name, number=fits is not None, bare=bare) and _ends(
            text, at + len(name), fits
        ):
            return True
        at = text.find(name, at + 1)
    return False


def _home(text: str, path: str) -> bool:
    """Whether a path below `~` stands in a text with the folder that this is short for."""
    if not path.startswith("~/"):
        return False
    written = re.compile(_HOME + re.escape(path.removeprefix("~/")))
    return any(_ends(text, one.end()) for one in written.finditer(text))


def _begins(text: str, at: int, name: str, *, number: bool, bare: bool) -> bool:
    if at == 0 or not name[0].isalnum():
        return bare is False or at == 0 or text[at - 1] != "/"
    before = text[at - 1]
    if number:
        follows = before in ".," and at > 1 and text[at - 2].isdecimal()
        return not (before.isalnum() or before == "_" or follows)
    if bare and before == "/":
        return False
    if before == "-":
        while at and text[at - 1] == "-":
            at -= 1
        return not (at and text[at - 1].isalnum())
    return not (before.isalnum() or before == "_") or _escaped(text, at)


def _escaped(text: str, at: int) -> bool:
    """Whether the letter before is that of a line's end as programs write it."""
    return text[max(0, at - 2) : at] in ("\\n", "\\t", "\\r")


def _ends(text: str, at: int, fits: _Fits | None = None) -> bool:
    if fits:
        after = _AFTER_NUMBER.match(text, at)
        return bool(after) and fits(after.group(1) or "", after.group(2) or "")
    after = text[at : at + 1]
    if after == "-":
        return not text[at + 1 : at + 2].isalnum()
    return not (after.isalnum() or after == "_")
