"""The servers that the settings name, with their keys."""

import os

from refold.errors import InvalidSetting
from refold.gateway.upstream import PASSED, STORED, Upstream
from refold.settings import UpstreamSettings


def upstreams(settings: tuple[UpstreamSettings, ...]) -> list[Upstream]:
    """The servers that the settings name, each with its key where that is in a variable."""
    return [
        Upstream(
            one.name, one.base_url, one.models, one.dialects, _key(one), one.paths, one.append_v1
        )
        for one in settings
    ]


def _key(upstream: UpstreamSettings) -> str:
    if upstream.key in (PASSED, STORED):
        return upstream.key
    found = os.environ.get(upstream.key, "").strip()
    if not found:
        raise InvalidSetting(
            f"The upstream {upstream.name!r} takes its key from {upstream.key}, which is not set.",
            f"Set the environment variable {upstream.key}, or another `key` in serve.upstreams.",
        )
    return found
