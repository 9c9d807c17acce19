"""The same command as `python -m refold.cli`."""

from refold.cli import main

if __name__ == "__main__":
    main()
