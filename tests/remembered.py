"""Sessions with a memory: a sink that keeps notes in a list, and talks that write to it."""

from talks import Talk, setup

from refold.errors import NotRemembered
from refold.memory import remembering
from refold.session import Session
from refold.view.profiles import COWAGENT

ROOMY = 1_000_000


class Kept:
    """A sink that keeps notes in a list, or fails."""

    def __init__(self, *, fails=False):
        self.notes = []
        self.fails = fails

    async def write(self, note):
        if self.fails:
            raise NotRemembered("The disk is gone.", "Mount it.")
        self.notes.append(note)


async def opened(log, sink=None, *, write=None, profile=COWAGENT, window=ROOMY, **how):
    """A talk whose folds are made in the session itself."""
    told = []
    remember = remembering(sink) if sink else None
    session = await Session.open(
        log,
        "s",
        setup(profile, window),
        watch=told.append,
        write=write,
        remember=remember,
        **how,
    )
    return Talk(log, session, told, session._engine)
