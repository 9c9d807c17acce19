"""What goes on when the person has left: the session is read for the board, by some profiles."""

import subprocess
import sys

from refold.cli.chat.conversation import Conversation
from refold.cli.chat.endpoint import server_of
from refold.cli.chat.wanted import Wanted
from refold.memory.consolidating import is_worth_reading


async def consolidates_later(conversation: Conversation, wanted: Wanted) -> bool:
    """Start reading the session in a process of its own, if it is worth it; whether it was."""
    board, name = conversation.board, conversation.name
    if board is None or not name or wanted.agent or conversation.profile.consolidate != "leaving":
        return False
    if await conversation.session() is None:
        return False
    if not await is_worth_reading(conversation.log, name, board):
        return False
    _start(_command(conversation, wanted))
    return True


def _start(command: list[str]) -> None:
    """Start it, and do not wait: it outlives this program and its terminal."""
    subprocess.Popen(  # noqa: S603 - this program itself
        command,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _command(conversation: Conversation, wanted: Wanted) -> list[str]:
    server = server_of(conversation.model)
    return [
        # -P: else modules of the folder that the chat was started in would be imported.
        *(sys.executable, "-P", "-m", "refold.cli", "board", "run", conversation.name),
        *("--store", wanted.store, "--tenant", wanted.tenant),
        *("--model", conversation.model.model_id),
        *(("--base-url", server) if server else ()),
    ]
