"""Running folds: one at a time for each session, each with an end in the log."""

from refold.engine.local import LocalEngine, LocalSteps
from refold.engine.protocol import Ended, Engine
from refold.fold.job import Make, Steps

__all__ = ["Ended", "Engine", "LocalEngine", "LocalSteps", "Make", "Steps"]
