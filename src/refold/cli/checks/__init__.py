"""What `refold doctor` looks at: each check gives rows, and a row says what to do."""

from refold.cli.checks.row import Row, Verdict

__all__ = ["Row", "Verdict"]
