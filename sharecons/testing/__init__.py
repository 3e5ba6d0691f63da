"""For tests: records, an embedded Kafka, and a real one.

    from sharecons.testing import EmbeddedBroker, make_record

`sharecons.testing.kafka` runs a real Kafka, `sharecons.testing.virtual_time` has event
loops with a virtual clock.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sharecons.testing.broker.embedded import EmbeddedBroker
    from sharecons.testing.broker.errors import RequestError
    from sharecons.testing.broker.settings.validation import SettingError
    from sharecons.testing.broker.snapshots import (
        GroupSnapshot,
        MemberSnapshot,
        OffsetSnapshot,
        OffsetState,
        PartitionSnapshot,
        RecordSnapshot,
    )
    from sharecons.testing.made_records import MadeRecord, make_batch, make_record

__all__ = [
    "EmbeddedBroker",
    "GroupSnapshot",
    "MadeRecord",
    "MemberSnapshot",
    "OffsetSnapshot",
    "OffsetState",
    "PartitionSnapshot",
    "RecordSnapshot",
    "RequestError",
    "SettingError",
    "make_batch",
    "make_record",
]
__dir__ = __all__.copy

_MODULES: Final[Mapping[str, str]] = {
    "EmbeddedBroker": "broker.embedded",
    "MadeRecord": "made_records",
    "RequestError": "broker.errors",
    "SettingError": "broker.settings.validation",
    "make_batch": "made_records",
    "make_record": "made_records",
}

if not TYPE_CHECKING:  # or type checkers would accept any name

    def __getattr__(name: str) -> object:
        # pytest imports this package at each start, for its plugin: the broker and its
        # codec are imported at their first use.
        if name not in __all__:
            text = f"module {__name__!r} has no attribute {name!r}"
            module = import_module(__name__)  # for Python's "Did you mean"
            raise AttributeError(text, name=name, obj=module)
        path = _MODULES.get(name, "broker.snapshots")
        return getattr(import_module(f"sharecons.testing.{path}"), name)
