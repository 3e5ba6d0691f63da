"""The build that runs: compiled or plain Python. They differ only in speed.

Compiled classes have no docstrings at run time; editors read them from the source.
"""

from typing import Final

from sharecons import _record

__all__ = ["COMPILED"]

COMPILED: Final[bool] = not _record.__file__.endswith(".py")
"""True if the modules that handle each record are compiled (by mypyc)."""
