"""Every API that the broker serves: its key, its versions and its handler.

The versions are Kafka 4.3's, if the codec has them, and Kafka 4.4's
TxnOffsetCommit 6; Kafka 4.0 removed older ones (KIP-896). A handler's
`handle(request, context)` returns the fields of the response, or None if there is no
response (Produce with acks=0).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final, TypeAlias

from sharecons.testing.broker.codec import Request, Response, api_name, known_versions
from sharecons.testing.broker.context import Context

__all__ = ["APIS", "TELEMETRY", "Api", "Handler"]

TELEMETRY: Final = (71, 72)
"""Announced only by brokers that collect the metrics of clients."""

Handler: TypeAlias = Callable[[Request, Context], Awaitable[Response | None]]


@dataclass(frozen=True, slots=True)
class Api:
    key: int
    versions: range
    module: str
    """A module of `sharecons.testing.broker.handlers`, imported at its first use."""

    @property
    def name(self) -> str:
        return api_name(self.key)

    @property
    def handle(self) -> Handler:
        package = "sharecons.testing.broker.handlers"
        handler: Handler = import_module(f"{package}.{self.module}").handle
        return handler


def _api(key: int, module: str, lowest: int, highest: int) -> tuple[int, Api]:
    known = known_versions(key)
    served = range(max(lowest, known[0]), min(highest, known[-1]) + 1)
    return key, Api(key, served, module)


APIS: Final[Mapping[int, Api]] = dict(
    [
        _api(0, "produce", 3, 13),
        _api(1, "fetch", 4, 18),
        _api(2, "list_offsets", 1, 10),
        _api(3, "metadata", 0, 13),
        _api(8, "offset_commit", 2, 10),
        _api(9, "offset_fetch", 1, 10),
        _api(10, "find_coordinator", 0, 6),
        _api(11, "join_group", 0, 9),
        _api(12, "heartbeat", 0, 4),
        _api(13, "leave_group", 0, 5),
        _api(14, "sync_group", 0, 5),
        _api(15, "describe_groups", 0, 6),
        _api(16, "list_groups", 0, 5),
        _api(17, "sasl_handshake", 0, 1),
        _api(18, "api_versions", 0, 4),
        _api(19, "create_topics", 2, 7),
        _api(20, "delete_topics", 1, 6),
        _api(21, "delete_records", 0, 2),
        _api(22, "init_producer_id", 0, 5),
        _api(23, "offset_for_leader_epoch", 2, 4),
        _api(24, "add_partitions_to_txn", 0, 3),
        _api(25, "add_offsets_to_txn", 0, 4),
        _api(26, "end_txn", 0, 5),
        _api(28, "txn_offset_commit", 0, 6),
        _api(29, "describe_acls", 1, 3),
        _api(30, "create_acls", 1, 3),
        _api(31, "delete_acls", 1, 3),
        _api(32, "describe_configs", 1, 4),
        _api(33, "alter_configs", 0, 2),
        _api(36, "sasl_authenticate", 0, 2),
        _api(37, "create_partitions", 0, 3),
        _api(42, "delete_groups", 0, 2),
        _api(44, "incremental_alter_configs", 0, 1),
        _api(47, "offset_delete", 0, 0),
        _api(60, "describe_cluster", 0, 2),
        _api(71, "get_telemetry_subscriptions", 0, 0),
        _api(72, "push_telemetry", 0, 0),
        _api(74, "list_config_resources", 0, 1),
        _api(75, "describe_topic_partitions", 0, 0),
        _api(76, "share_group_heartbeat", 1, 1),
        _api(77, "share_group_describe", 1, 1),
        _api(78, "share_fetch", 1, 2),
        _api(79, "share_acknowledge", 1, 2),
        _api(84, "read_share_group_state", 0, 0),
        _api(87, "read_share_group_state_summary", 0, 1),
        _api(90, "describe_share_group_offsets", 0, 1),
        _api(91, "alter_share_group_offsets", 0, 0),
        _api(92, "delete_share_group_offsets", 0, 0),
    ]
)
