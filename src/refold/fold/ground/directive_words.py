"""The words by which a directive is known, and what kind of word others are: lists from files."""

import tomllib
from importlib.resources import files
from typing import Final

from pydantic import TypeAdapter

_TABLES = TypeAdapter(dict[str, dict[str, str]])
_UNSPACED = "unspaced"


def _read() -> dict[str, dict[str, tuple[str, ...]]]:
    folder = files("refold.fold.ground")
    listed = ("directive_words.toml", "word_kinds.toml")
    text = "\n".join(folder.joinpath(one).read_text(encoding="utf-8") for one in listed)
    return {
        name: {language: _listed(words) for language, words in table.items()}
        for name, table in _TABLES.validate_python(tomllib.loads(text)).items()
    }


def _listed(text: str) -> tuple[str, ...]:
    return tuple(" ".join(one.split()) for one in text.split(",") if one.strip())


_WORDS = _read()


def _spaced(name: str) -> tuple[str, ...]:
    lists = (words for language, words in _WORDS[name].items() if language != _UNSPACED)
    return tuple(dict.fromkeys(word for words in lists for word in words))


def _unspaced(name: str) -> tuple[str, ...]:
    return _WORDS[name].get(_UNSPACED, ())


HUMANS: Final = _spaced("humans")
PEOPLE: Final = _spaced("people")
PEOPLE_UNSPACED: Final = _unspaced("people")
SAYING: Final = _spaced("saying")
GRANT: Final = _spaced("grant")
GRANT_UNSPACED: Final = _unspaced("grant")
REPORT: Final = _spaced("report")
REPORT_UNSPACED: Final = _unspaced("report")
OBLIGE: Final = _spaced("oblige")
OBLIGE_UNSPACED: Final = _unspaced("oblige")
ADDRESS: Final = _spaced("address")
VERBS: Final = frozenset(_spaced("verbs"))
VERBS_UNSPACED: Final = _unspaced("verbs")
AMBIGUOUS: Final = frozenset(_spaced("ambiguous"))
AFTER_NOUN: Final = frozenset(_spaced("after_noun"))
DETERMINERS: Final = frozenset(_spaced("determiners"))
NO_VERBS: Final = frozenset(_spaced("no_verbs"))
LANGUAGES: Final = {name: frozenset(words) for name, words in _WORDS["small"].items()}
STOP: Final = frozenset(_spaced("small"))
HYPHEN_PREFIXES: Final = frozenset(_spaced("hyphen_prefixes"))
HYPHEN_SUFFIXES: Final = frozenset(_spaced("hyphen_suffixes"))
WELL_KNOWN: Final = frozenset(_spaced("well_known"))
NUMBER_WORDS: Final = _spaced("number_words")
NEUTRAL: Final = frozenset(_spaced("neutral"))
