"""`refold demo`: a conversation that plays by itself, through the real thing."""
