"""Shipped for those who build on Refold: conformance suites, strategies, crash points.

Needs pytest and hypothesis (`pip install 'refold[testing]'`).
"""
