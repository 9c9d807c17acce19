"""The settings that these functions follow."""

from functools import cache

from refold.settings import load_settings
from refold.view.profiles import Profile


@cache
def configured(name: str = "co-cli") -> Profile:
    """The profile with what files and the environment set; they are read once in a process.

    Once, because a function that runs before every request must do no I/O.
    `configured.cache_clear()` has them read again.
    """
    return load_settings(name).profile
