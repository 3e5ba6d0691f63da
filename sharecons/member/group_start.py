"""From the first connection of a member to the moment before it joins its group."""

from collections.abc import Awaitable, Callable, Sequence

from sharecons.member.group_setup import GroupConfigs, check_and_configure
from sharecons.member.settings import MemberSettings
from sharecons.net.connection import Connection

__all__ = ["CheckBeforeJoining", "connect_and_check"]

CheckBeforeJoining = Callable[[GroupConfigs], Awaitable[None]]
"""A further check of the user; its exceptions end the start."""


async def connect_and_check(
    settings: MemberSettings,
    topics: Sequence[str],
    check: CheckBeforeJoining | None,
    check_starting: Callable[[], None],
) -> tuple[Connection, int]:
    """Connect, configure and check the group.

    Return a connection, and the delivery limit of the group.

    Args:
        topics: the subscription.
        check: is awaited before the member joins.
        check_starting: raises an error if the member was closed meanwhile.

    Raises:
        Error: as `Cluster.connect_any`, `check_and_configure` and `check`.
    """
    connection = await settings.cluster.connect_any(
        timeout=settings.connect_timeout, retry=True
    )
    try:
        configs = await check_and_configure(
            connection,
            settings.cluster,
            settings.fetch,
            settings.auto_offset_reset,
            settings.request_timeout,
        )
        if check is not None:
            await check(configs)
        # After the configs are set, which decide where the group starts, and before the
        # join: brokers reject it once the group has members.
        if configs.offset_reset == "latest" and topics:
            await _start_at_end(settings, connection, topics, configs)
        check_starting()
    except BaseException:
        await connection.aclose()
        raise
    return connection, configs.delivery_limit


async def _start_at_end(
    settings: MemberSettings,
    connection: Connection,
    topics: Sequence[str],
    configs: GroupConfigs,
) -> None:
    # Members do not load the admin client's requests unless they need them.
    from sharecons.member.skipped_records import start_at_end

    await start_at_end(
        connection,
        settings.cluster,
        settings.fetch.group_id,
        topics,
        settings.request_timeout,
        is_chosen=configs.is_reset_chosen,
    )
