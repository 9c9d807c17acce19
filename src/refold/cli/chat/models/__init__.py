"""Whom a chat talks with: models by their keys and servers, and agents."""
