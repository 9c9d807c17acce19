"""How Sphinx builds these pages: `make docs`."""

from importlib.metadata import version as version_of

project = "Refold"
author = "The Refold contributors"
copyright = f"2026, {author}"  # noqa: A001 (Sphinx reads this name)
release = version = version_of("refold")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"

html_theme = "furo"
html_title = f"Refold {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
