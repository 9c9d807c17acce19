"""Refold inside agent frameworks: Pydantic AI and co-cli."""
