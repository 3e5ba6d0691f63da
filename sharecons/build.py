"""Which build runs: compiled, or plain Python. They behave alike, but for speed.

Compiled classes have no docstrings at run time; editors read them in the source.
"""

from typing import Final

from sharecons import untyped

__all__ = ["COMPILED"]

COMPILED: Final[bool] = not untyped.__file__.endswith(".py")
"""True if the modules that each record passes through are compiled (by mypyc)."""
