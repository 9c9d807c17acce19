"""Refold inside other frameworks."""
