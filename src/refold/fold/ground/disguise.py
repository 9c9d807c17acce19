"""What a model wrote, without what would hide a word from a check or forge one of our marks."""

import html
import re
import unicodedata

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]*(?:\s[^<>]{0,200})?/?>")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\(([^()\s]{0,500})\)")
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})[\w+-]*\s*$")
_BULLET = re.compile(r"^\s*(?:(?:[-*+•◦▪‣–—]|#{1,6}|>+|\(?\d{1,3}[.)])\s+|\[[ xX]\]\s*|\|\s*)+")  # noqa: RUF001 - bullets
_MARKS = re.compile(  # how our own lines begin, wherever they stand in a claim
    r"\[\s*(?=Summary of|Compacted conversation|[\d,.…]+ earlier messages|…\s*earlier"
    r"|The sections that follow)",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"\bThe\s+(user)\s*\(\s*entry[^)]{0,20}\)\s*:?\s*|\(\s*entry\s+\d+\s*\)\s*:\s*"
    r"|\b(user|assistant|tool)\s+\d{1,9}\s*:\s*",
    re.IGNORECASE,
)
"""How a quotation of ours begins: what follows is not one."""
_FRAME = re.compile(
    r"\b(?:user|assistant|tool)\s+\d{1,9}\s*:\s*[\"“„]|[—–-]\s*no source\b"  # noqa: RUF001 - dashes
    r"|\[\s*Written by a model\b|\(\s*but entry \d",
    re.IGNORECASE,
)
_DECORATION = re.compile(r"[*_`~|#<>\[\]{}\"“”„«»]+")
_SPACED = re.compile(r"(?<!\w)(?:\w[ .\-_*·]){3,}\w(?!\w)")
_ACCENTS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһӏԛԝкмтвнгԍпзиαεοριτυχκνηωβγɑɡıᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "aeopcyxijsdhlqwkmtbhrgn3uaeopituxkvnwbyagiabcdeghijklmnoprstuvwyz",
)
_SPACES = re.compile(r"[^\S\u00a0\u202f]+")  # not those within numbers
_LONGEST = 20_000
_LONGEST_LINE = 2_000  # nothing that can be checked is longer, and checking would take long
_LONGEST_BLOCK = 8_000


def cleaned(text: str) -> str:
    """One line, or the lines of a code block: no control, hidden or forged characters."""
    text = "".join(map(_visible, unicodedata.normalize("NFC", text[:_LONGEST])))
    text = _LINK.sub(r"\1 \2", _TAG.sub(" ", _COMMENT.sub(" ", html.unescape(text))))
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if is_block(text):
        lines = [line for line in lines if not _FENCE.match(line)]
        lines = [_unmarked(line.replace("```", ""))[:_LONGEST_LINE] for line in lines]
        return _cut("\n".join(line for line in lines if line.strip()), _LONGEST_BLOCK)
    line = " ".join(map(_unmarked, lines)).replace("```", "")
    return _cut(_SPACES.sub(" ", line).strip(), _LONGEST_LINE)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def is_block(text: str) -> bool:
    """Whether it is a block of code."""
    lines = text.strip().splitlines()
    return len(lines) > 1 and any(_FENCE.match(line) or _drawn(line) for line in lines)


def _drawn(line: str) -> bool:
    return any(mark in line for mark in "├│└")


def _unmarked(line: str) -> str:
    """The line without its bullet, and without what begins one of our own lines."""
    bare = line if _drawn(line) else re.sub(r"^(\s*)[#>]+\s", r"\1", line)
    if line.lstrip() == line:
        bare = _BULLET.sub("", bare)
    return _SPEAKER.sub(_unattributed, _MARKS.sub("", bare))


def _unattributed(frame: re.Match[str]) -> str:
    return f"{frame.group(1) or frame.group(2) or 'user'}: "


def forges(text: str) -> bool:
    """Whether a quoted text holds what would read as the beginning or the end of our own lines."""
    return bool(_FRAME.search(text) or _MARKS.search(text))


def _visible(char: str) -> str:
    if char in "\n\t":
        return char
    if char in "\u2028\u2029\x0b\x0c\r\x85":
        return "\n"
    kind = unicodedata.category(char)
    if kind in ("Cc", "Cs", "Co", "Cn"):
        return " " if kind == "Cc" else ""
    hidden = kind == "Cf" or char in "\u115f\u1160\u3164\uffa0\u2800\u034f"
    return "" if hidden or "\ufe00" <= char <= "\ufe0f" else char


def folded(text: str) -> str:
    """The text as it is compared: lower case, without accents, hidden characters and variants."""
    if text.isascii():
        return text.lower()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    text = unicodedata.normalize("NFKC", bare).casefold()
    return re.sub("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]", "", text)


def readings(text: str) -> list[str]:
    """The ways in which a reader may take the words, to look for what is hidden in them."""
    plain = folded(html.unescape(text))
    plain = re.sub("[’‘ʼ]", "'", plain)  # noqa: RUF001 - apostrophes
    found = [plain, _DECORATION.sub(" ", plain), _DECORATION.sub("", plain)]
    found.append(_SPACED.sub(lambda run: re.sub(r"[\W_]", "", run.group()), found[1]))
    found += [one.translate(_LOOKALIKES) for one in found if not one.isascii()]
    return list(dict.fromkeys(" ".join(one.split()) for one in found))


def mixed(word: str) -> bool:
    """Whether letters of different scripts stand in one word: one may pass for another."""
    if word.isascii():
        return False
    scripts = {unicodedata.name(char, "?").split()[0] for char in word if char.isalpha()}
    return len(scripts & {"LATIN", "CYRILLIC", "GREEK"}) > 1
