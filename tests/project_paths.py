"""Where things are, from wherever a test lies."""

import os
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
DOCS = ROOT / "docs"
DATA = Path(os.environ.get("REFOLD_DATA", ROOT.parent / "shared" / "data"))
