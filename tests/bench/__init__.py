"""The project's benchmark: `python -m tests.bench --help`, from the repository's root.

What is measured is the `sharecons` that is installed, which may be compiled. Python
puts the checkout first, for `tests`; so it goes to the end, in this process and in
those of the clients.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:] = [path for path in sys.path if Path(path).resolve() != ROOT] + [str(ROOT)]
