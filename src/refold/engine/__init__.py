"""Running folds: one at a time for each session, each with an end in the log."""

from refold.engine.local import LocalEngine
from refold.engine.protocol import Ended, Engine
from refold.engine.steps import LocalSteps, LoggedSteps
from refold.fold.job import Make, Steps

__all__ = ["Ended", "Engine", "LocalEngine", "LocalSteps", "LoggedSteps", "Make", "Steps"]
