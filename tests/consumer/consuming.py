"""The consumer that most tests of this package use."""

from typing import Any

from sharecons import ShareConsumer
from sharecons.testing import EmbeddedBroker

__all__ = ["consuming"]


def consuming(broker: EmbeddedBroker, **options: Any) -> ShareConsumer[Any, Any]:
    """Return a consumer of the topic orders from its beginning, over memory."""
    return ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        **{
            "network": broker.network,
            "auto_offset_reset": "earliest",
            **options,
        },
    )
