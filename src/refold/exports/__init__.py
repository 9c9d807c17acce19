"""Sessions written for people and programs: Markdown, one JSON object, a page."""

from refold.exports.forms import ENDINGS, FORMS, Form, exported

__all__ = ["ENDINGS", "FORMS", "Form", "exported"]
