"""Entry point of `python -m sharecons`, the same as the command `sharecons`."""

import sys

from sharecons.cli import main

if __name__ == "__main__":
    sys.exit(main())
