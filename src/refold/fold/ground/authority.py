"""Whose word a directive of a summary is: the user's own, or only the model's plan."""

import re
from typing import NamedTuple

from refold.fold.ground.clauses import clauses
from refold.fold.ground.directive_words import GRANT, HUMANS, PEOPLE, REPORT
from refold.fold.ground.directives import Reading, directive
from refold.fold.ground.disguise import folded
from refold.fold.ground.evidence import Evidence, Voice
from refold.fold.ground.named import named
from refold.fold.ground.stems import content, stem
from refold.log import PartRef

_MODEL: frozenset[Voice] = frozenset({"model", "earlier"})
_USER: frozenset[Voice] = frozenset({"user"})
_MAY = frozenset({"~may", "~can", "~could", "~should", "~will", "~said"})
_USER_BAR = 0.5
_CONTRARY_BAR = 0.75  # of what a permission is about
_MODEL_BAR = 0.62
_MENTION_BAR = 0.45  # of what only stands where plans stand
_CLAUSE_BAR = 0.3
_MORE = 0.1
_SHORT = 2  # words, of a clause that its names explain
_LOOKED_AT = 24
_REACH = 1
_DISTANT = re.compile(  # the model speaks of an instruction, and does not make it its own
    r"\b(?:ignor(?:e|ed|ing)|suspicious\w*|injection\w*|injected|malicious\w*|refus(?:e|ed|ing)"
    r"|not (?:follow|act|obey|comply|do that|trust|going to)|won't|will not|untrusted|phishing"
    r"|(?:tells?|asks?|instructs?|wants?) (?:me|us) to|embedded instruction\w*"
    r"|looks like an? (?:attack|attempt)"
    r"|social engineering|scam|shady|odd instruction|strange instruction|ignoriere\w*"
    r"|verdachtig\w*)\b"
    r"|忽略|可疑|注入|無視|不審"
)
_OWN = re.compile(
    r"\b(?:i'll|i will|let me|i'm going to|i am going to|we'll|we will|next|plan|going to|todo"
    r"|to do|need to"
    r"|needs to|should|must|step|then|remaining|still|have to|steps|will|now|first|wp\d+|phase"
    r"|ich werde|als nachstes"
    r"|je vais|voy a|vou|nun|jetzt)\b|\[ \]|接下来|我将|次に|これから"
)
_NEGATED = re.compile(
    r"\b(?:not|never|no|don't|doesn't|mustn't|shouldn't|cannot|can't|won't|avoid|without|stop"
    r"|nicht|nie|kein\w*|niemals"
    r"|pas|jamais|nunca|nao|non|mai|niet|nooit|geen|не|никогда|нельзя)\b|不|勿|禁止|ない|な$"
)
_TURNS = re.compile(
    r"(?i)^(?:no\b|not\b|never\b|but\b|just kidding|however|nein|aber|non\b|mais|pero|nao|ma\b"
    r"|maar|nee\b|нет|но\b|不|でも|いや"
    r"|except|unless|wait|actually|scratch that|forget)"
)
_TRIGGERS = frozenset(
    f"~{stem(folded(one.rstrip('*:')))}"
    for one in (*GRANT, *HUMANS, *PEOPLE, *REPORT)
    if " " not in one
)


class Rest(NamedTuple):
    """What a directive rests on."""

    text: str
    """Of the user, the words."""
    ref: PartRef
    share: float


class Authority:
    """Looks for whoever said what a summary says that somebody said."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def user(self, text: str) -> Rest | None:
        """What the user said of it, if anything, in the user's own words."""
        keys = asked(text)
        evidence = self._evidence
        best: tuple[float, int] | None = None
        for at in evidence.best(keys, _USER, _LOOKED_AT):
            matched = [key for key in keys if key in evidence.held[at]]
            share = evidence.share(keys, evidence.held[at])
            if share < _USER_BAR or len(matched) < min(2, len(keys)):
                continue
            if best is None or share > best[0]:
                best = share, at
        if best is None:
            return None
        at = self._last_word(keys, best[1])
        return Rest(self._words(at), evidence.ref(at), best[0])

    def _last_word(self, keys: list[str], at: int) -> int:
        """What the user said there, or later to the contrary."""
        evidence = self._evidence
        if self._forbids(at):
            return at
        about = [key for key in keys if key in evidence.held[at] and key not in _MAY]
        later = (
            one
            for one in evidence.best(about, _USER, _LOOKED_AT)
            if one > at and evidence.share(about, evidence.held[one]) >= _CONTRARY_BAR
        )
        return max(filter(self._forbids, later), default=at) if about else at

    def _forbids(self, at: int) -> bool:
        return bool(_NEGATED.search(folded(self._evidence.text(at))))

    def model(self, text: str, reading: Reading | None) -> Rest | None:
        """Where the model itself meant to do so, and not only told of it."""
        keys = content(text)
        evidence = self._evidence
        bar = _MODEL_BAR if reading else _MENTION_BAR
        # A little that nobody said must not hide in much that was.
        first, *rest = map(content, _parts(text))
        parts = [one for one in rest if len(one) > 1] + [first] * (len(first) > _SHORT)
        negated = bool(_NEGATED.search(folded(text)))
        for at in evidence.best(keys, _MODEL, _LOOKED_AT):
            held = evidence.around(at, _REACH)
            share = evidence.share(keys, held)
            if any(evidence.share(one, held) < _CLAUSE_BAR for one in parts):
                continue
            alone = evidence.share(keys, evidence.held[at]) >= bar
            near = self._near(at, alone=alone)
            if share < bar or _DISTANT.search(near):
                continue
            if negated and not _NEGATED.search(near):
                continue
            if reading == "oblige" and not _OWN.search(near) and directive(near[:2000]) is None:
                continue
            if reading != "address" and self._repeated(keys, at, share, bool(_OWN.search(near))):
                continue
            return Rest("", evidence.ref(at), share)
        return None

    def _repeated(self, keys: list[str], at: int, share: float, own: bool) -> bool:  # noqa: FBT001
        """Whether a tool said it first, and the model did not make it its own, or not all of it."""
        evidence = self._evidence
        tools = [
            (evidence.share(keys, evidence.held[one]), one)
            for one in evidence.best(keys, frozenset[Voice]({"tool"}), _LOOKED_AT)
        ]
        more = any(told > share + _MORE for told, _ in tools)
        return more or (not own and any(told >= _MODEL_BAR and one < at for told, one in tools))

    def _near(self, at: int, *, alone: bool) -> str:
        """What is said around it; what is said elsewhere does not count where it needs no more."""
        evidence = self._evidence
        here = evidence.windows[at]
        near = range(max(0, at - _REACH), min(len(evidence.windows), at + _REACH + 1))
        return " ".join(
            evidence.text(one)
            for one in near
            if evidence.windows[one].piece == here.piece
            or (evidence.windows[one].voice == here.voice and not alone)
        )

    def _words(self, at: int) -> str:
        """The sentence, with the line it stands under and what takes it back."""
        windows = self._evidence.windows
        window = windows[at]
        after = windows[at + 1] if at + 1 < len(windows) else None
        turned = (
            after
            and after.piece == window.piece
            and (_TURNS.match(after.said) or window.said.rstrip().endswith("?"))
        )
        said = (window.lead, window.said, after.said if after and turned else "")
        return " ".join(" ".join(said).split())


def _parts(text: str) -> list[str]:
    """The clauses, without the names in them: those are looked up by themselves."""
    for one in reversed(named(text)):
        text = f"{text[: one.start]} {text[one.end :]}"
    return [clause.text for clause in clauses(text)]


def asked(text: str) -> list[str]:
    """What a directive is about, without the words that make it one."""
    keys = content(text)
    return [key for key in keys if key not in _TRIGGERS] or keys


def about(text: str) -> int:
    """How many words a directive has besides those that make it one."""
    return sum(key not in _TRIGGERS for key in content(text))
