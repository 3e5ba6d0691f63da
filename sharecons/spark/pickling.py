"""Pickles the source so that an executor without sharecons raises a clear error.

Spark pickles the data source and its readers with cloudpickle, and executors unpickle
both before they call sharecons. Without it they would raise `ModuleNotFoundError: No
module named 'sharecons'`.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pyspark import cloudpickle

from sharecons.version import VERSION

__all__ = ["Reduced", "reduce_for_workers"]

T = TypeVar("T")

Reduced = tuple[Callable[..., T], tuple[Any, ...]]
"""The result of `__reduce__`."""


def reduce_for_workers(kind: type[T], state: Mapping[str, Any]) -> Reduced[T]:
    """Return what an object's `__reduce__` returns; only cloudpickle can pickle it.

    Unpickling creates an instance of `kind` with the attributes of `state`. It raises
    an ImportError that says what to install where if Python lacks a module, or has
    another version of sharecons that does not know the class.
    """
    version = VERSION

    # cloudpickle pickles the code of a nested function, and of other functions only
    # their names. So this must not use anything of sharecons.
    def restore(pickled: bytes) -> Any:
        import pickle
        import socket
        import sys

        try:
            kind, state = pickle.loads(pickled)
        except (ImportError, AttributeError) as error:
            raise ImportError(
                f"the Python of this worker ({sys.executable} on "
                f"{socket.gethostname()}) cannot load the source ({error}); install "
                f"sharecons[arrow] {version} there, as on the driver, or send a packed "
                "environment with --archives and set PYSPARK_PYTHON to its interpreter "
                "(docs/spark-running.md)"
            ) from error
        restored = kind.__new__(kind)
        restored.__dict__.update(state)
        return restored

    pickler: Any = cloudpickle  # without types
    return restore, (pickler.dumps((kind, dict(state))),)
