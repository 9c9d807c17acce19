"""Settings from environment variables and files, each with where it comes from."""

from refold.settings.loading import DEFAULT_PROFILE, Settings, load_settings
from refold.settings.names import ALIASES, KEYS, SERVE_KEYS, Alias, Level, Source, variable_of
from refold.settings.serve import Serve, UpstreamSettings
from refold.settings.trust import LeftOut, Trust
from refold.settings.writing import (
    SCHEMA_LINE,
    SettingChange,
    check_setting,
    set_setting,
    settings_schema,
    unset_setting,
)

__all__ = [
    "ALIASES",
    "DEFAULT_PROFILE",
    "KEYS",
    "SCHEMA_LINE",
    "SERVE_KEYS",
    "Alias",
    "LeftOut",
    "Level",
    "Serve",
    "SettingChange",
    "Settings",
    "Source",
    "Trust",
    "UpstreamSettings",
    "check_setting",
    "load_settings",
    "set_setting",
    "settings_schema",
    "unset_setting",
    "variable_of",
]
