"""Drafts that begin a session and say something in it."""

from refold.log import Author, Message, Opened


def opened():
    return [Author().draft(Opened("openai-chat", "balanced"))]


def message_drafts(text="hello"):
    return [Author().draft(Message(f'{{"role":"user","content":"{text}"}}'.encode()))]
