"""How much the slow tests do: a little, or a lot, as HYPOTHESIS_PROFILE says.

`few` is for the order of the tests, which does not need many examples.
"""

import os
from typing import TypeVar

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
T = TypeVar("T")


def amount(*, few: T, quick: T, ci: T, thorough: T) -> T:
    """The amount of the profile that these tests are run by."""
    return {"few": few, "quick": quick, "ci": ci, "thorough": thorough}[PROFILE]
