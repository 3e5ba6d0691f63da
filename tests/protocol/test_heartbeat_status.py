"""The heartbeat status by results and times."""

from sharecons.protocol.group.heartbeat_status import HeartbeatStatus


def test_connected_from_an_accepted_heartbeat_until_the_next_is_overdue():
    status = HeartbeatStatus()
    assert not status.is_connected(0.0)

    status.on_accepted(1.0, valid_until=11.0)
    assert status.is_connected(1.0)
    assert status.is_connected(10.9)
    assert not status.is_connected(11.0)
    assert status.last_accepted == 1.0


def test_failure_ends_the_connection_and_keeps_the_time():
    status = HeartbeatStatus()
    status.on_accepted(1.0, valid_until=11.0)
    status.on_failed()
    assert not status.is_connected(2.0)
    assert status.last_accepted == 1.0
