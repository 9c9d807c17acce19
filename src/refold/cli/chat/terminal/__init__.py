"""The chat in a terminal: drawn at the bottom, everything said in the scrollback above."""
