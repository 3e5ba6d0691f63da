"""The settings of one member of a share group."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from sharecons.config import validation
from sharecons.config.not_given import NOT_GIVEN, NotGiven
from sharecons.config.security import Security
from sharecons.instrumentation import (
    Instrumentation,
    MemberObserver,
    SendObserver,
    choose_instrumentation,
)
from sharecons.member.group_setup import OffsetReset
from sharecons.net.cluster import Cluster
from sharecons.net.io.transport import Network
from sharecons.protocol.fetch.settings import FetchSettings
from sharecons.version import VERSION

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
        enable_metrics_push: whether brokers that want metrics receive them.
        instrumentation: observes the member; None if nothing does.
        value_views: whether values are memoryviews instead of bytes.
    """

    fetch: FetchSettings
    cluster: Cluster
    offset_reset: OffsetReset
    rack: str | None = None
    connect_timeout: float = 10.0
    request_timeout: float = 30.0
    enable_metrics_push: bool = True
    instrumentation: Instrumentation | None = None
    value_views: bool = False

    @classmethod
    def of(
        cls,
        *,
        group_id: str,
        bootstrap_servers: str | Sequence[str] = "localhost:9092",
        auto_offset_reset: str | None | NotGiven = NOT_GIVEN,
        max_records: int = 2000,
        acquire_mode: Literal["batch_optimized", "record_limit"] = "batch_optimized",
        values: Literal["bytes", "memoryview"] = "bytes",
        max_wait: float = 0.5,
        min_bytes: int = 1,
        max_bytes: int = 8 << 20,
        client_id: str = "sharecons",
        member_id: str | None = None,
        client_rack: str | None = None,
        security: Security | None = None,
        connect_timeout: float = 10.0,
        request_timeout: float = 30.0,
        enable_metrics_push: bool = True,
        network: Network | None = None,
        instrumentation: Instrumentation | None | NotGiven = NOT_GIVEN,
    ) -> Self:
        """Return the settings for the arguments of `ShareConsumer` or `ShareWorker`.

        Raises:
            ConfigurationError: an argument is invalid.
        """
        validation.check_choice("acquire_mode", acquire_mode, validation.ACQUIRE_MODES)
        validation.check_choice("values", values, validation.VALUES)
        validation.check_count("max_records", max_records, 1)
        validation.check_count("min_bytes", min_bytes, 0)
        validation.check_count("max_bytes", max_bytes, 1)
        validation.check_bool("enable_metrics_push", enable_metrics_push)
        hour = validation.HOUR
        validation.check_number("max_wait", max_wait, 0, hour)
        validation.check_number("connect_timeout", connect_timeout, 0.001, hour)
        validation.check_number("request_timeout", request_timeout, 0.001, hour)
        fetch = FetchSettings(
            group_id=validation.check_group_id(group_id),
            member_id=validation.member_id_of(member_id),
            max_wait=max_wait,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            max_records=max_records,
            record_limit=acquire_mode == "record_limit",
        )
        cluster = Cluster(
            validation.parse_bootstrap(bootstrap_servers),
            network,
            client_id=validation.check_string("client_id", client_id),
            software_version=VERSION,
            security=security,
        )
        return cls(
            fetch=fetch,
            cluster=cluster,
            offset_reset=OffsetReset.of(auto_offset_reset),
            rack=validation.check_optional_name("client_rack", client_rack),
            connect_timeout=connect_timeout,
            request_timeout=request_timeout,
            enable_metrics_push=enable_metrics_push,
            instrumentation=choose_instrumentation(instrumentation),
            value_views=values == "memoryview",
        )

    def with_member_id(self, name: str) -> Self:
        """Return the settings with the member id of this name.

        Raises:
            ConfigurationError: the name is empty or not a str.
        """
        member_id = validation.member_id_of(name)
        return replace(self, fetch=replace(self.fetch, member_id=member_id))

    def new_observer(self) -> MemberObserver | None:
        """Return the observer of a member with these settings, if anything observes."""
        if self.instrumentation is None:
            return None
        client = self.cluster.as_client(self.fetch.group_id)
        return self.instrumentation.observe_member(client)

    def observe_copies(self) -> SendObserver | None:
        """Return the observer of copies of the member's records, as `new_observer`."""
        if self.instrumentation is None:
            return None
        client = self.cluster.as_client(self.fetch.group_id)
        return self.instrumentation.observe_copies(client)
