"""`refold hooks`: for coding agents whose traffic cannot go through the gateway."""
