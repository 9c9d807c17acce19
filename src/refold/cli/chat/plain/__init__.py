"""The chat as plain lines, for screen readers and pipes."""
