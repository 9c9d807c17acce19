"""What was read of what a model wrote, as tests look at it."""

from refold.fold.write.draft import from_text


def said(text):
    """The claims of a text, as triples."""
    return [(one.subject, one.text, one.cites) for one in from_text(text).claims]


def all_of(written):
    return "\n".join((written.title, *(f"{one.text} {one.quote}" for one in written.claims)))
