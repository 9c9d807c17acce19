"""How the past is folded: when, where, to which summary, shown how, and taken back."""
