"""`refold wrap`: a coding agent behind a gateway of its own, for as long as the agent runs."""
