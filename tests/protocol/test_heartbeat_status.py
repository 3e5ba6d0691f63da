"""The heartbeat status after results, at times."""

from sharecons.protocol.group.heartbeat_status import HeartbeatStatus


def test_status_is_connected_until_the_next_heartbeat_is_overdue():
    status = HeartbeatStatus()
    assert not status.is_connected(0.0)

    status.on_accepted(1.0, valid_until=11.0)
    assert status.is_connected(1.0)
    assert status.is_connected(10.9)
    assert not status.is_connected(11.0)
    assert status.last_accepted == 1.0


def test_status_after_a_failure_is_disconnected_and_keeps_the_last_time():
    status = HeartbeatStatus()
    status.on_accepted(1.0, valid_until=11.0)
    status.on_failed()
    assert not status.is_connected(2.0)
    assert status.last_accepted == 1.0
