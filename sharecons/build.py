"""Which build runs: compiled, or plain Python. They behave alike, but for speed.

Compiled classes have no docstrings at run time; editors read them in the source.
"""

from typing import Final

from sharecons import _record

__all__ = ["COMPILED"]

COMPILED: Final[bool] = not _record.__file__.endswith(".py")
"""True if the modules that each record passes through are compiled (by mypyc)."""
