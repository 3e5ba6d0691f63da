"""`python -m sharecons`, which is also the command `sharecons`."""

import sys

from sharecons.cli import main

if __name__ == "__main__":
    sys.exit(main())
