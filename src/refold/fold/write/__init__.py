"""Summaries by a model: what it is shown, how it is asked, and how its answer is read."""
