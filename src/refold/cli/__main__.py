"""The same command as `python -m refold.cli`."""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109 - as Python wrote it
    # Python put the current folder first, where a clone may bring a module of any name.
    del sys.path[0]

from refold.cli import main

if __name__ == "__main__":
    main()
