"""Runs the examples of pages with the Python that runs this: from an installed wheel, in CI.

python tools/run_pages.py PAGE...

Each page runs in an empty folder, which is its home too. `tests/docs/test_docs.py` runs every page
in the same way, with the sources; this checks that the built package has all that they need.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from page_blocks import blocks_of, run_page


def main() -> int:
    """The command line."""
    programs = Path(sys.executable).parent
    for name in sys.argv[1:]:
        page = Path(name).resolve()
        with TemporaryDirectory() as folder:
            kept = {key: value for key, value in os.environ.items() if "REFOLD" not in key}
            os.environ.clear()
            os.environ.update(kept, HOME=folder)
            for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
                os.environ.pop(variable, None)
            before = Path.cwd()
            os.chdir(folder)
            try:
                run_page(page, Path(folder), lambda: programs)
            finally:
                os.chdir(before)
        print(f"{name}: {len(blocks_of(page))} examples run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
