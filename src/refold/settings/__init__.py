"""Settings from environment variables and files, each with where it comes from."""

from refold.settings.given import Level, Source
from refold.settings.keys import ALIASES, KEYS, Alias, variable_of
from refold.settings.loading import DEFAULT_PROFILE, Settings, load_settings
from refold.settings.writing import Kept, set_setting, unset_setting

__all__ = [
    "ALIASES",
    "DEFAULT_PROFILE",
    "KEYS",
    "Alias",
    "Kept",
    "Level",
    "Settings",
    "Source",
    "load_settings",
    "set_setting",
    "unset_setting",
    "variable_of",
]
