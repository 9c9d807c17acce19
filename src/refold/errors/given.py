"""What was given and cannot be taken."""

from refold.errors.root import RefoldError


class InvalidInput(RefoldError):
    """What was given cannot be taken, whatever the state of the log."""

    code = "invalid-input"
    usual_fix = "Correct the value and call again."


class InvalidEntry(InvalidInput):
    """An entry that the log would not be able to honour later."""

    code = "invalid-entry"
    usual_fix = "Correct the entry and append it again."


class InvalidMessage(InvalidInput):
    """A payload that is no message of its session's format."""

    code = "invalid-message"
    usual_fix = "Append messages in the format that the session was opened with."


class InvalidSetting(InvalidInput):
    """A setting that is not known, or has a value it cannot have."""

    code = "invalid-setting"
    usual_fix = "Correct the setting; `refold config` lists them all."


class TransferError(RefoldError):
    """A file to import that is not whole, or not ours."""

    code = "transfer"
    usual_fix = "Export the session again and import the new file."
