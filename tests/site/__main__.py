"""python -m tests.site DIR"""

import sys
from pathlib import Path

from tests.site.build import build

if __name__ == "__main__":
    build(Path(sys.argv[1]))
