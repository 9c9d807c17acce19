"""Grounding: what a model wrote, with where it comes from, by code."""

from refold.fold.ground.grounding import GONE, Grounded, ground

__all__ = ["GONE", "Grounded", "ground"]
