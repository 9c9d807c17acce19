"""Grounding: what a model wrote, checked against the log, by code."""

from refold.fold.ground.grounding import GONE, MEANT, SEEN, UNCHECKED, Grounded, ground

__all__ = ["GONE", "MEANT", "SEEN", "UNCHECKED", "Grounded", "ground"]
