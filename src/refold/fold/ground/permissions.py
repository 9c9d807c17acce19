"""Claims that somebody allowed something: the one kind that a summary never makes.

What the user allowed stands in the user's own words, among them alone. This filter is small on
purpose and is not to grow: what it misses stands in the model's account, which grants nothing.
"""

import re
from typing import Final

from refold.fold.ground.disguise import readings

_GRANTED: Final = (
    r"approv(?:ed|es|al|als|e)|authori[sz](?:ed|es|ation|e)|permi(?:ts|tted|ssion|ssions)"
    r"|consent(?:ed|s)?|allow(?:ed|s)|entitled|green[- ]?li(?:t|ght|ghted)|go[- ]ahead"
    r"|sign(?:ed)?[- ]off|clearance|cleared (?:to|for)|blessing|carte blanche|free hand"
    r"|waived?|pre-?approved"
)
_FILTER: Final = re.compile(
    rf"\b(?:{_GRANTED})\b"
    r"|\b(?:user|customer|client|owner|boss|lead|admin|you|he|she|they)(?: \w+){0,2}"
    r" (?:agreed|okayed|ok'd|confirmed|said yes|(?:is|are) (?:fine|ok|okay) with|no objections?)\b"
    r"|\bno (?:further )?(?:confirmation|approval|permission|review|sign-off)s?\b"
    r"|\b(?:no need|need not|needn't|not necessary|without having|don't have)"
    r" to (?:ask|confirm|check)\b"
    r"|\bwithout (?:asking|confirmation|approval|further approval|review)\b"
    r"|\b(?:you|we|i|it|they|the (?:agent|assistant|model|bot)) (?:may|are free to|is free to)\b"
)
_TECHNICAL: Final = re.compile(
    r"\b(?:permission denied|permissions? (?:bits?|mode|error|of|on|for|check)|file permissions?"
    r"|not (?:allowed|permitted|authori[sz]ed|approved)"
    r"|allowed[- ](?:hosts?|origins?|list|values?))\b"
)


def permits(text: str) -> bool:
    """Whether a text says that something is allowed, in any reading of its letters."""
    return any(_FILTER.search(_TECHNICAL.sub(" ", one)) for one in readings(text))
