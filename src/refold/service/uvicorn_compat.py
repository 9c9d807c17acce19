"""The parts of uvicorn that are used and not public. A test checks that they exist.

`check` runs when the service starts: without the attribute that says whether a request is under
way, every body above the limit for headers would be cut off.
"""

import asyncio
import logging
from typing import Any, Final

import uvicorn
from uvicorn.server import ServerState

from refold.errors import InvalidInput

EXPECTED_MESSAGES: Final = (
    "ASGI callable returned without completing response.",  # logged where it is done on purpose
    "Unsupported upgrade request.",  # the client is told
    "No supported WebSocket library detected.",  # nor would one help
)
"""The beginnings of uvicorn's warnings that are no news to an operator."""
_CYCLE: Final = "cycle"


def request_is_under_way(protocol: asyncio.Protocol) -> bool:
    """Whether a request's headers have arrived and its answer has not ended."""
    cycle: Any = getattr(protocol, _CYCLE)
    return cycle is not None and not cycle.response_complete


def check(config: uvicorn.Config) -> None:
    """Raise if this uvicorn's connections do not say whether a request is under way."""
    if not config.loaded:
        config.load()
    make: Any = config.http_protocol_class
    if not hasattr(make(config=config, server_state=ServerState(), app_state={}), _CYCLE):
        raise InvalidInput(
            f"Refold does not work with uvicorn {uvicorn.__version__}.",
            'Install a version that it was tested with: pip install --upgrade "refold[serve]"',
        )


def is_news(record: logging.LogRecord) -> bool:
    """Whether an operator should read this message of uvicorn's."""
    return not str(record.msg).startswith(EXPECTED_MESSAGES)
