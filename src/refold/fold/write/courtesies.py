"""What a model says to whom it answers, around a summary: a greeting, an offer, "none"."""
# ruff: noqa: RUF001 - apostrophes and colons as they are written

import re
from typing import Final

from refold.fold.write.citations import cited
from refold.fold.write.subjects import words_of

_PREAMBLE = re.compile(
    r"^\W{0,3}(?:sure|certainly|of course|okay|ok|absolutely|here(?:['’]s| is| are)"
    r"|below (?:is|are)|this is (?:a|the) summary|the following (?:is|are)"
    r"|i(?:['’]ll| will| have|['’]ve) (?:now )?(?:summari[sz]e|provide|create|write|read)"
    r"|hier ist|voici|aquí está|aqui está|ecco|以下是|以下は|다음은)",
    re.IGNORECASE,
)
_CHATTER = re.compile(
    r"^\W{0,3}(?:(?:please )?let me know|feel free|if you(?:['’]d| need| want| would| have)"
    r"|i hope (?:this|that)|would you like|do you want me|shall i|should i|is there anything"
    r"|happy to help|hope this helps|lass(?:en sie)? (?:es )?mich|n['’]hésitez"
    r"|si (?:necesitas|desea|quieres)|如果您|如有|必要であれば)",
    re.IGNORECASE,
)
_LONGEST = 300  # characters; a longer line says more than that
_NOTHING: Final = frozenset(
    {"none", "n a", "nothing", "none so far", "none yet", "not applicable", "keine", "keiner"}
    | {"nichts", "aucun", "aucune", "rien", "ninguno", "ninguna", "nada", "无", "無", "なし"}
    | {"нет", "없음"}
)
_SHORT = 40


def without_courtesies(lines: list[str]) -> list[str]:
    """The lines without a greeting before them and an offer after them."""
    said = [at for at, line in enumerate(lines) if line.strip()]
    if not said:
        return lines
    first, last = said[0], said[-1]
    if _courteous(_CHATTER, lines[last]):
        lines = lines[:last]
    greeted = first < len(lines) and _courteous(_PREAMBLE, lines[first])
    if greeted and lines[first].rstrip()[-1] in ":：.!。":
        lines = lines[first + 1 :]
    return lines


def says_nothing(text: str) -> bool:
    """Whether a text only says that there is nothing to say."""
    return len(text) <= _SHORT and words_of(text) in _NOTHING


def _courteous(pattern: re.Pattern[str], line: str) -> bool:
    return len(line) <= _LONGEST and bool(pattern.match(line)) and not cited(line)[1]
