"""Kafkas for tests: one that is embedded in the test, and the real one.

    from sharecons.testing import EmbeddedBroker

`sharecons.testing.kafka` runs a real Kafka, `sharecons.testing.virtual_time` has
event loops whose clock jumps.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharecons.testing.broker.embedded import EmbeddedBroker

__all__ = ["EmbeddedBroker"]


def __getattr__(name: str) -> object:
    # pytest reads this package at each start, for the plugin in it: the broker and
    # its codec are loaded by who asks for them.
    if name in __all__:
        return getattr(import_module("sharecons.testing.broker.embedded"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
