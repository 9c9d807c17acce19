"""A session as a file for people or programs: Markdown, one JSON object, or a page to look at."""

from refold.cli.exports.forms import ENDINGS, FORMS, Form, exported

__all__ = ["ENDINGS", "FORMS", "Form", "exported"]
