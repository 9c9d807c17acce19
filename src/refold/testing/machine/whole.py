"""All rules together."""

from refold.testing.machine.appending import Appending
from refold.testing.machine.folding import Folding
from refold.testing.machine.forgetting import Forgetting
from refold.testing.machine.looking import Looking
from refold.testing.machine.marking import Marking
from refold.testing.machine.steering import Steering


class LogMachine(Appending, Marking, Folding, Steering, Forgetting, Looking):
    """Random histories of one tenant's log."""
