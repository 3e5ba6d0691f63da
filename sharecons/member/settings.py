"""The settings of one member of a share group."""

from dataclasses import dataclass

from sharecons.member.group_setup import OffsetReset
from sharecons.net.cluster import Cluster
from sharecons.protocol.fetch.settings import FetchSettings

__all__ = ["MemberSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """The settings with which a member joins its group; times in seconds.

    Attributes:
        fetch: the group, the member id, and the limits of a fetch.
        cluster: opens connections.
        offset_reset: the value that the member sets for its group before it joins.
        rack: for brokers that assign by rack.
        connect_timeout: to connect to a first broker.
        request_timeout: to wait for one response.
    """

    fetch: FetchSettings
    cluster: Cluster
    offset_reset: OffsetReset
    rack: str | None = None
    connect_timeout: float = 10.0
    request_timeout: float = 30.0
