"""What in a summary reads like a directive: a wish, an order, a permission, a plan.

Whoever reads a summary may act on it. So whatever looks as if somebody asked, forbade, allowed or
decided something is found here, rather too often than too rarely.
"""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from refold.fold.ground.disguise import folded, readings
from refold.fold.ground.evidence import Evidence, Voice
from refold.fold.ground.words import (
    ADDRESS,
    AFTER_NOUN,
    AMBIGUOUS,
    DETERMINERS,
    GRANT,
    GRANT_UNSPACED,
    HUMANS,
    LANGUAGES,
    NO_VERBS,
    OBLIGE,
    OBLIGE_UNSPACED,
    PEOPLE,
    PEOPLE_UNSPACED,
    REPORT,
    REPORT_UNSPACED,
    SAYING,
    VERBS,
    VERBS_UNSPACED,
    clauses,
    content,
    named,
    stem,
)
from refold.log import PartRef
from refold.log.text import words

Reading = Literal["grant", "report", "order", "oblige", "address"]
"""A permission; what somebody wants or said; a bare imperative; any other duty or plan; a model
that speaks of itself, or to somebody."""


def _any(listed: Iterable[str]) -> str:
    return "|".join(sorted(map(_pattern, listed), key=len, reverse=True))


def _pattern(one: str) -> str:
    spaced = r"\s+".join(map(re.escape, folded(one).split()))
    end = "" if one[-1] in ":*" or not one[-1].isalnum() else r"(?!\w)"
    start = r"(?<!\w)" if one[0].isalnum() else ""
    return start + spaced.replace(r"\*", r"\w*") + end


def _compiled(spaced: Iterable[str], unspaced: Iterable[str]) -> re.Pattern[str]:
    return re.compile(f"{_any(spaced)}|{'|'.join(map(re.escape, map(folded, unspaced)))}")


_GRANT = _compiled(GRANT, GRANT_UNSPACED)
_REPORT = _compiled(REPORT, REPORT_UNSPACED)
_OBLIGE = _compiled(OBLIGE, OBLIGE_UNSPACED)
_ADDRESS = re.compile(_any(ADDRESS))
_BETWEEN = (
    r"(?:\s*[:,(]?\s*(?:also|explicitly|clearly|then|already|now|just|later|never|always|strongly"
    r"|really|again|again,|has|have|had|is|was|did|does|not|would|will|who|once|earlier|finally"
    r"|hat|ha|a|to|may|auch|schon|ja|recently|verbally|repeatedly|actually|apparently|too|since"
    r"|today|initially|still|ultimately|specifically|previously|himself|herself|themselves|both"
    r"|only|generally|usually|often|sometimes|he|she|they)\b){0,4}\s*[:,—-]?\s*"
)
_TECHNICAL = (
    r"(?:interface|tables?|ids?|names?|agents?|data|lists?|menus?|models?|objects?"
    r"|records?"
    r"|story|stories|services?|class|classes|types?|librar\w+|side|code|space|profiles?"
    r"|settings?|accounts?"
    r"|flows?|pages?|routes?|endpoints?|tokens?|roles?|sessions?|stores?|keys?|fields?|columns?"
    r"|rows?|schemas?"
    r"|modules?|components?|tests?|fixtures?|groups?|guides?|docs?|manual|errors?|permissions?"
    r"|email|api|sdk|app"
    r"|library|server|x0|folder|directory|file|files|path|node|process|script|command|commands"
    r"|count|base|facing)\b"
)
_SOMEBODY = re.compile(
    f"(?:{_any((*HUMANS, *PEOPLE))}|\\b(?:they|he|she|who))(?:'s)?{_BETWEEN}(?:{_any(SAYING)})"
    f"|(?:{'|'.join(PEOPLE_UNSPACED)})"
    f"|(?:^|[,:;.(—-]\\s*|\\b(?:the|our|this|that|my|their|your|every|and|but|der|den|dem|le|el"
    f"|il|de|o|l')\\s*)"
    f"(?:{_any(HUMANS)})(?:'s)?(?!\\w)(?!\\s*[-_.]?\\s*{_TECHNICAL})"
    f"|(?:by|from|per|for|with|told|to|ask|asked|of|through|via|von|vom|par|por|da|dal|door|от)\\s+"
    f"(?:(?:the|our|their|der|dem|la|le|el|il|de|o|a"
    f"|l')\\s*)?(?:{_any(HUMANS)})(?!\\s*[-_.]?\\s*{_TECHNICAL})"
)
_MAY = re.compile(
    r"\b(?:i|you|we|they|he|she|it|agent|assistant|model|bot|anyone|everyone|nobody)\s+may\b"
    r"|\bmay(?:\s+\w+)?\s+be\s+\w+(?:ed|en|t)\b|^may\b|^yes\b"
)
_MAY_VERB = re.compile(r"\b(?:may|can)\s+(?:also\s+|now\s+|just\s+|simply\s+|then\s+)?(\w+)")
_REFUSED = re.compile(
    r"\b(?:is|are|was|were|be)?\s*(?:not|never|n't)\s+(?:\w+\s+)?"
    r"(?:allowed|permitted|authori[sz]ed|approved|accepted|granted|confirmed|agreed)\b"
    r"|\b(?:isn't|aren't|wasn't|cannot be|can't be)\s+(?:allowed|permitted|authori[sz]ed"
    r"|approved)\b"
    r"|\bpermission denied\b|\brequested (?:resource|url|page|file|range|operation|version)\b"
)
_FORBIDS = re.compile(
    r"(?:^|[,:;.(—-]\s*|\b(?:and|but|then|please|so|to)\s+)(?:do not|don't|dont|never|always"
    r"|not to)\b"
)
_NO = re.compile(
    r"^no\s+(?!x0|errors?|issues?|problems?|failures?|warnings?|changes?|such|results?|match"
    r"|output|one"
    r"|differences?|regressions?|tests? (?:failed|found)|longer|data|entries|files?\b|further)"
)
_LETTERS = re.compile(r"(?<!\w)(?:[^\W\d_] ){7,}[^\W\d_](?!\w)")  # nobody writes so to be read
_FIRST = re.compile(r"^(?:step \d+|first|then|finally|lastly|afterwards)\b")
_ONLY = re.compile(r"\w{3,}\s+only\s*[.!]?$")
_DUTIES = (_FIRST, _FORBIDS, _NO, _ONLY, _OBLIGE)
_LABEL = re.compile(r"^[^:]{1,40}:\s+")
_INFINITIVE = {
    "fr": re.compile(r"^(?:ne\s+(?:pas\s+)?)?\w{2,}(?:er|ir|re|ez)\b"),
    "es": re.compile(r"^(?:no\s+)?\w{2,}(?:ar|er|ir|arlo|arla)\b"),
    "pt": re.compile(r"^(?:nao\s+)?\w{2,}(?:ar|er|ir|ou)\b|^nao\s+\w+(?:e|a|em|am)\b"),
    "it": re.compile(r"^(?:non\s+)?\w{2,}(?:are|ere|ire|ate|ete|ite)\b"),
    "de": re.compile(
        r"^\w+(?:e|en|n)\s+(?:sie|du|alle|die|den|das|nicht)\b"
        r"|^(?!.*\b(?:ist|sind|waren?|wurden?|hat|haben|hatten?|wird|werden)\b)"
        r".*\b\w{3,}(?:en|ern|eln)\s*[.!]?$"
    ),
    "nl": re.compile(
        r"^(?!.*\b(?:is|zijn|was|waren|werd|werden|heeft|hebben|had|wordt)\b).*\b\w{3,}en\s*[.!]?$"
    ),
    "ru": re.compile(r"^(?:не\s+)?\w+(?:ть|ти|ите|аите|ьте|аи|еи|уи)\b"),
}
_SUBJECT = re.compile(
    r"^(?:then|now|also|first|second|third|finally|next|afterwards?|later|just|simply"
    r"|please|again|instead|therefore|so|and|or|but|always|never|to|step \d+|lastly|after that"
    r"|quickly"
    r"|immediately|still|must|should)[,:]?\s+"
)


def directive(text: str, *, code: bool = False) -> Reading | None:
    """How a sentence reads, if it reads like a directive; the strictest way to take it."""
    found = [_directive(one, code=code) for one in readings(_without_names(text))]
    for reading in ("grant", "report", "order", "oblige", "address"):
        if reading in found:
            return reading
    return None


def _without_names(text: str) -> str:
    """The text without names such as `approve_refund`: they are looked up, not read."""
    for one in reversed(named(text)):
        if one.sort in ("name", "path", "link", "code") and _written_as_one(one.text):
            text = f"{text[: one.start]} x0 {text[one.end :]}"
    return text


def _written_as_one(name: str) -> bool:
    if " " in name or not name.isascii():
        return False
    return bool(re.search(r"[_./\d\\@]|[a-z][A-Z]|\(\)$", name))


def _directive(text: str, *, code: bool) -> Reading | None:
    allowed = _REFUSED.sub(" must not ", text)
    if _permits(allowed):
        return "grant"
    if _SOMEBODY.search(text) or _REPORT.search(allowed):
        return "report"
    if not code and imperative(text):
        return "order"
    if "must not" in allowed or any(one.search(text) for one in _DUTIES):
        return "oblige"
    return "address" if _ADDRESS.search(text) else None


def _permits(text: str) -> bool:
    return bool(_GRANT.search(text) or _MAY.search(text) or _LETTERS.search(text)) or _may_do(text)


def _may_do(text: str) -> bool:
    """Whether something may be done, or can be by a model or a person."""
    for match in _MAY_VERB.finditer(text):
        someone = re.search(r"\b(?:i|you|we|agent|assistant)\s*$", text[: match.start()])
        if match.group(1) in VERBS and (someone or match.group().startswith("may")):
            return True
    return False


def imperative(text: str) -> bool:
    """Whether a sentence begins by asking for something."""
    bare = text.strip(" \t*_`\"'“”„«»([{-–—•>#|.:!")  # noqa: RUF001 - dashes, quotation marks
    return any(_asks(one) for one in {bare, _LABEL.sub("", bare), _SUBJECT.sub("", bare)})


def _asks(text: str) -> bool:
    if text.startswith(VERBS_UNSPACED):
        return True
    while _SUBJECT.match(text):
        text = _SUBJECT.sub("", text)
    match = re.match(r"(?:re-?)?([^\W\d_]+)(?:[-/][^\W\d_]+)*(?:\s+(\S+))?(?:\s+(\S+))?", text)
    if match is None or not match.group(2):
        return match is not None and match.group() == text.rstrip(" !.") in VERBS - AMBIGUOUS
    verb, second = match.group(1), match.group(2).strip(".,:;!")
    if verb in VERBS:
        if match.group(2)[0] in ",:;)=":
            return False
        counted = bool(re.fullmatch(r"[\d.]+|x0", second)) and match.group(3) in AFTER_NOUN
        return not (verb in AMBIGUOUS and (second in AFTER_NOUN or counted))
    if _before_a_noun(match):
        return True
    language = language_of(text)
    return language in _INFINITIVE and bool(_INFINITIVE[language].search(text))


def _before_a_noun(match: re.Match[str]) -> bool:
    """Whether a word that we do not know as a verb stands as one: `torch the archive`."""
    first, second, third = match.group(1), match.group(2), match.group(3) or ""
    if first in NO_VERBS or first.endswith(("ed", "ing", "s", "ly")):
        return False
    particle = second in ("off", "out", "up", "down", "on", "over", "away", "back", "through")
    return (third if particle else second) in DETERMINERS


def language_of(text: str) -> str:
    """The language of a text by its small words; English when nothing tells."""
    there = words(text)
    counts = {name: sum(one in small for one in there) for name, small in LANGUAGES.items()}
    best = max(counts, key=lambda name: (counts[name], name == "en"))
    return best if counts[best] else "en"


# Whose word a directive of a summary is: the user's own, or only the model's plan.

_MODEL: frozenset[Voice] = frozenset({"model", "earlier"})
_USER: frozenset[Voice] = frozenset({"user"})
_MAY_AUTHORITY = frozenset({"~may", "~can", "~could", "~should", "~will", "~said"})
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
        keys = request_keys(text)
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
        about = [key for key in keys if key in evidence.held[at] and key not in _MAY_AUTHORITY]
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


def request_keys(text: str) -> list[str]:
    """What a directive is about, without the words that make it one."""
    keys = content(text)
    return [key for key in keys if key not in _TRIGGERS] or keys


def about(text: str) -> int:
    """How many words a directive has besides those that make it one."""
    return sum(key not in _TRIGGERS for key in content(text))
