"""Run the program of a client as in a deployment, which has no packages for tests.

python -m tests.chaos.clients MODULE JSON
"""

import runpy
import sys

if __name__ == "__main__":
    # kio imports hypothesis if it is installed, which takes 0.3 s at each start.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    module = sys.argv.pop(1)
    runpy.run_module(f"tests.chaos.clients.{module}", run_name="__main__")
