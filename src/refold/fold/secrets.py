"""Redacts secrets before a text is shown to a model or stored.

Our own patterns find secrets that are named as such or have a well-known form. If the package
`bc-detect-secrets` is installed, its detectors find the keys of many more providers. If a detector
fails, the line may hold a secret: the whole line is redacted, and a logged warning names the
detector.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Final, Protocol, cast

REDACTED: Final = "[redacted]"
UNCHECKED: Final = "[redacted: this line could not be checked for secrets]"
_LOGGER: Final = logging.getLogger("refold.fold")

_STRONG = (
    r"(?:passw(?:or)?d|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|client[_-]?secret|account[_-]?key|secret[_-]?key|credentials?)"
)
_WEAK = r"(?:token|authorization|cookie|auth|signature)"
_SET = r"\w{0,40}\\?[\"'`]?[ \t]{0,4}(?:=>|:=|[:=])[ \t]{0,4}"
_NO_VALUE = (
    r"(?!\\?[\"'`]?(?:string|str|text|number|password|passwd|secret|none|null|undefined|true|false"
    r"|required|optional|example|changeme|redacted|bearer|basic|[*.x•]+)\\?[\"'`,;)\s]"
    r"|\\?[\"'`]?(?:<|\$|\{|%|process\.env|os\.environ))"
)
_KEY_BLOCK = re.compile(  # all between its first line and its last, which may be cut off
    r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
    r"(?:(?!-----(?:BEGIN|END) )[\s\S]){20,20000}(?=-----END |\Z|-----BEGIN )"
)
_IN_ADDRESS = re.compile(r"(\w://[^\s/:@\"']{0,100}:)[^\s/@\"']{1,200}(?=@)")
_PROVIDER_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"eyJ[\w-]{8,4000}\.(?:eyJ)?[\w-]{8,8000}\.[\w-]{8,4000}"
    r"|(?:sk|pk|rk)[-_](?=[\w-]{0,80}\d)[\w-]{20,300}"
    r"|gh[oprsu]_\w{30,255}|github_pat_\w{40,255}|glpat-[\w-]{18,100}"
    r"|xox[a-z]-[\w-]{10,200}|xapp-[\w-]{20,200}"
    r"|(?:hf|npm)_(?=[a-z0-9]{0,40}[A-Z])[A-Za-z0-9]{30,60}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])|AIza[\w-]{35}"
    r"|ya29\.[\w-]{20,300}|pypi-AgE[\w-]{50,400}|dop_v1_\w{60,70}|shp(?:at|ss|ca|pa)_\w{32}"
    r"|SG\.[\w-]{16,32}\.[\w-]{16,64}|AGE-SECRET-KEY-1\w{40,80}|whsec_\w{24,80}"
    r"|\d{8,10}:AA[\w-]{33})"
)
_IN_HEADER = re.compile(
    r"\b((?:bearer|basic)[ \t]{1,4})(?=[\w+/=.~-]{0,400}\d)[\w+/=.~-]{16,4000}", re.IGNORECASE
)
_IN_MARKS = re.compile(  # password="…", as configuration and code have it
    rf"({_STRONG}{_SET}){_NO_VALUE}(\\?[\"'`])[^\s\"'`\\]{{6,400}}(\\?[\"'`])", re.IGNORECASE
)
_BARE = re.compile(  # PASSWORD=…, as the environment has it: no name or call has such signs
    rf"({_STRONG}{_SET}){_NO_VALUE}(?=[^\s\"'`,;()\[\]{{}}<>|]{{0,100}}[\d!@#$%^&*+])"
    r"[^\s\"'`,;()\[\]{}<>|\\]{6,400}(?![(\[.\w])",
    re.IGNORECASE,
)
_LONG = re.compile(  # token: …, where it is too long for a word
    rf"({_WEAK}{_SET}(?:\\?[\"'`])?){_NO_VALUE}(?=[^\s\"'`]{{0,100}}\d)"
    r"(?=[^\s\"'`]{0,100}[A-Za-z])[\w+/=.~:-]{20,4000}(?![(\[])",
    re.IGNORECASE,
)
_HINTS = ("pass", "pwd", "secret", "key", "token", "auth", "cookie", "credential", "signature")

_SKIPPED_DETECTORS: Final = frozenset(
    {"BasicAuthDetector", "JwtTokenDetector", "PrivateKeyDetector", "KeywordDetector"}
    | {"Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector"}
    | {"AzureStorageKeyDetector"}
)
"""Detectors that take hashes or signatures for keys, are slow, or find no more than our patterns
do."""
_SLOW_DETECTORS: Final = frozenset(
    {"CloudantDetector", "IbmCloudIamDetector", "IbmCosHmacDetector", "SoftlayerDetector"}
)
"""Detectors that only find secrets with a name before them, and look for it at length."""
_NAMES = re.compile("key|pwd|pw|pass|token|secret|iam|api", re.IGNORECASE)
_RUN = re.compile(r"[\w+=.~-]{16,}")
_DIGIT = re.compile(r"\d")
_WINDOW = 2_000  # characters of a line that are looked at together
_OVERLAP = 300
_MIN_SECRET = 8

_SUSPICIOUS = (
    (re.compile(r"(\w://)[^/\s@]+@"), r"\1…@"),
    (re.compile(r"\b(bearer|basic)\s+[^\s\"',;]+", re.IGNORECASE), r"\1 …"),
    (
        re.compile(
            r"([\w-]*(?:key|token|secret|passw(?:or)?d|authorization|credential|cookie)s?"
            r"[\"']?\s*[:=]\s*)(?:\"[^\"]*\"?|'[^']*'?|[^\s,;&]+)",
            re.IGNORECASE,
        ),
        r"\1…",
    ),
    (re.compile(r"\b(?:sk|pk|rk|gh[a-z]|xox[a-z]|hf|glpat|AKIA|AIza)[-_*\w]{8,}"), "…"),
    (re.compile(r"(?=[\w+=-]*\d)[\w+=-]{32,}"), "…"),
)
"""Addresses with a password, headers, named secrets, keys in the form of a provider's, and
whatever else is too long for a word."""


class Detector(Protocol):
    def analyze_string(self, string: str) -> Iterable[str]: ...


def redact(text: str) -> str:
    """Replace each secret with a mark; hashes, ids, paths and names stay: a summary needs them."""
    if "PRIVATE KEY" in text:
        text = _KEY_BLOCK.sub(rf"\1{REDACTED}", text)
    return "".join(map(_redact_line, text.splitlines(keepends=True)))


def _redact_line(line: str) -> str:
    if "://" in line and "@" in line:
        line = _IN_ADDRESS.sub(rf"\1{REDACTED}", line)
    lower = line.lower()
    if any([hint in lower for hint in _HINTS]):  # noqa: C419 - a list is quicker
        line = _IN_MARKS.sub(rf"\1\2{REDACTED}\3", line)
        line = _BARE.sub(rf"\1{REDACTED}", line)
        line = _LONG.sub(rf"\1{REDACTED}", line)
    if _RUN.search(line):
        line = _PROVIDER_KEY.sub(REDACTED, line)
        if "bearer" in lower or "basic" in lower:
            line = _IN_HEADER.sub(rf"\1{REDACTED}", line)
        try:
            secrets = {secret for window in _windows(line) for secret in _detect(window)}
        except _DetectorError as error:
            _warn(error.detector, error.reason)
            return UNCHECKED + line[len(line.rstrip("\r\n")) :]
        for secret in sorted(secrets, key=lambda secret: (-len(secret), secret)):
            line = line.replace(secret, REDACTED)
    return line


def without_secrets(text: str) -> str:
    """Replace everything that might be a secret, hashes and ids too, with an ellipsis.

    For texts that are stored permanently, such as error messages.
    """
    for pattern, replacement in _SUSPICIOUS:
        text = pattern.sub(replacement, text)
    return text


def _windows(line: str) -> Iterator[str]:
    """The line, or pieces of a long one, with something as long as a key that has a digit."""
    if not detectors():
        return
    for start in range(0, len(line), _WINDOW - _OVERLAP):
        window = line[start : start + _WINDOW]
        if any(_DIGIT.search(run) for run in _RUN.findall(window)):
            yield window
        if start + _WINDOW >= len(line):
            break


def _detect(line: str) -> Iterator[str]:
    named = _NAMES.search(line)
    for detector in detectors():
        if type(detector).__name__ in _SLOW_DETECTORS and not named:
            continue
        try:
            found = [one for one in detector.analyze_string(line) if len(one) >= _MIN_SECRET]
        except _DetectorError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the line was not checked
            # Its message may repeat the line, and so a secret.
            raise _DetectorError(type(detector).__name__, type(error).__name__) from None
        yield from found


class _DetectorError(Exception):
    def __init__(self, detector: str, reason: str) -> None:
        super().__init__(detector, reason)
        self.detector = detector
        self.reason = reason


@cache  # warns once
def _warn(detector: str, reason: str) -> None:
    _LOGGER.warning(
        "The secret detector %s failed (%s). Lines that it could not check are left out of what "
        "summaries and notes are made from. Update the package that it comes from, and start the "
        "program again: pip install --upgrade bc-detect-secrets",
        detector,
        reason,
    )


@cache
def detectors() -> tuple[Detector, ...]:
    """The detectors of the package, if it is installed; they use no network.

    If it is installed but broken, the result is one detector that always fails.
    """
    try:
        package = import_module("detect_secrets.core.plugins.util")
    except ModuleNotFoundError:
        return ()
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing can be checked
        return (_BrokenPackage(type(error).__name__),)
    try:
        classes = cast("dict[str, type[Detector]]", package.get_mapping_from_secret_type_to_class())
        ordered = (detector for _, detector in sorted(classes.items()))
        return tuple(one() for one in ordered if one.__name__ not in _SKIPPED_DETECTORS)
    except Exception as error:  # noqa: BLE001 - see above
        return (_BrokenPackage(type(error).__name__),)


class _BrokenPackage:
    def __init__(self, reason: str) -> None:
        self._reason = reason

    def analyze_string(self, string: str) -> Iterable[str]:  # noqa: ARG002 - as of all detectors
        raise _DetectorError("bc-detect-secrets", self._reason)
