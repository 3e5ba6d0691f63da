"""The project's benchmark: `python -m tests.bench --help`, from the repository's root.

The benchmark measures the installed `sharecons`, which can be compiled. Python puts the
checkout first in `sys.path`. The package moves it to the end, in this process and in
the client processes, so that only `tests` is imported from it.

Read `options`, then `measurements`, `bench`, `roster`; `clients` has one program per
client, `report` renders the results. `--scenario large` measures large and compressed
records (`large` has the cases), many consumers, and memory (`memory` has the bound);
`segments` counts record batches. `spark` and `workers` are programs of their own.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:] = [path for path in sys.path if Path(path).resolve() != ROOT] + [str(ROOT)]
