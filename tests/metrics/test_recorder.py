"""All metrics of one scenario on a controlled clock, with values computed by hand."""

import math
from dataclasses import replace
from typing import Final
from uuid import UUID

import pytest

from sharecons.metrics import METRICS, MetricName
from sharecons.metrics.catalog import values_of
from sharecons.metrics.recorder import FetchSize, MetricsRecorder, PollTimes
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeFailure,
    AcknowledgeResult,
)
from sharecons.protocol.group.messages import Heartbeat, HeartbeatResponse
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import Range, ShareFetchResponse
from sharecons.record import ACCEPT, RENEW
from tests.protocol.message_factories import fetch_response, partition_response

P0: Final = SharePartition(UUID(int=1), 0)
P1: Final = SharePartition(UUID(int=1), 1)
NOT_ACQUIRED: Final = AcknowledgeFailure(121, "INVALID_RECORD_STATE", "not acquired")


def response(*acquired: tuple[int, int], throttle: float = 0.0) -> ShareFetchResponse:
    """Return a response with these offsets, a partition each."""
    return fetch_response(
        *(
            partition_response(SharePartition(P0.topic_id, index), offsets)
            for index, offsets in enumerate(acquired)
        ),
        throttle=throttle,
    )


def heartbeat(member_epoch: int) -> Heartbeat:
    return Heartbeat(
        group_id="billing",
        member_id="a",
        member_epoch=member_epoch,
        rack=None,
        topics=(),
    )


def heartbeat_response(*assigned: SharePartition) -> HeartbeatResponse:
    return HeartbeatResponse(
        error=0,
        message=None,
        member_epoch=1,
        heartbeat_interval=5.0,
        assignment=frozenset(assigned),
        throttle=0.0,
    )


class Scenario:
    """One consumer from 1000 to 1020 seconds; times of the calls are in brackets.

    Two heartbeats (1000 and 1008), which bring two assignments, three fetches
    (1000.5, 1005 and 1012), the last two throttled and the last one empty, two requests
    with acknowledgements (1005 and 1011), of which 20 fail (1012), and four polls.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        self.recorder = MetricsRecorder()
        self.recorder.clock = lambda: self.now
        self.reader = PollTimes()

    def run(self) -> None:
        recorder, reader = self.recorder, self.reader
        recorder.last_heartbeat = 1000.0
        join, joined = heartbeat(0), heartbeat_response()
        recorder.on_heartbeat_response(join, joined, 1000.0, 1000.25)

        recorder.on_poll_started(reader, 1000.5)
        recorder.on_acknowledgements_sent({}, 1000.5)
        recorder.on_fetched(response((0, 5), (10, 13)), 1000.5, 1001.0)
        size = FetchSize(recorder, 2)
        size.add(600, 1001.0)
        recorder.on_poll_ended(reader, 1001.0)
        recorder.on_poll_started(reader, 1003.0)
        size.add(400, 1003.0)
        recorder.on_poll_ended(reader, 1003.0)

        recorder.on_poll_started(reader, 1005.0)
        accepted = {
            P0: (Range(0, 5, bytes((ACCEPT,))),),
            P1: (Range(10, 13, bytes((ACCEPT,))),),
        }
        recorder.on_acknowledgements_sent(accepted, 1005.0)
        recorder.on_fetched(response((20, 49), throttle=0.5), 1005.0, 1006.0)
        FetchSize(recorder, 1).add(3000, 1006.0)
        recorder.on_poll_ended(reader, 1006.0)

        recorder.last_heartbeat = 1008.0
        assigned = heartbeat_response(P0)
        recorder.on_heartbeat_response(heartbeat(1), assigned, 1008.0, 1009.0)

        mixed = bytes((ACCEPT,)) * 5 + bytes((RENEW,)) * 5
        recorder.on_acknowledgements_sent(
            {P0: (Range(20, 39, bytes((ACCEPT,))), Range(40, 49, mixed))}, 1011.0
        )
        recorder.on_acknowledge_results(
            [
                AcknowledgeResult("orders", 0, 20, 39, ACCEPT, NOT_ACQUIRED),
                AcknowledgeResult("orders", 0, 40, 49, ACCEPT, None),
            ],
            1012.0,
        )

        recorder.on_poll_started(reader, 1012.0)
        recorder.on_fetched(response(throttle=1.0), 1012.0, 1014.0)
        recorder.on_poll_ended(reader, 1014.0)

    def values(self, now: float) -> dict[MetricName, float]:
        self.now = now
        return dict(values_of(self.recorder))


AT_1020: Final[dict[MetricName, float]] = {
    "last-poll-seconds-ago": 8.0,  # since 1012
    # Polls start at 1000.5, 1003, 1005 and 1012.
    "time-between-poll-avg": 11500 / 3,
    "time-between-poll-max": 7000.0,
    # 0 of 2 s (1001 to 1003), 1 of 3 s (to 1006), 2 of 8 s (to 1014).
    "poll-idle-ratio-avg": (0 / 2 + 1 / 3 + 2 / 8) / 3,
    "heartbeat-response-time-max": 1000.0,  # of 250 and 1000
    "heartbeat-rate": 2 / (19.75 + 30),  # since 1000.25, and an empty window
    "heartbeat-total": 2,
    "last-heartbeat-seconds-ago": 12.0,  # since 1008
    "rebalance-total": 2,
    "rebalance-rate-per-hour": 2 * 3600 / (19.75 + 30),
    "fetch-size-avg": 2000.0,  # of 1000, decoded at 1003, and 3000
    "fetch-size-max": 3000.0,
    "bytes-fetched-rate": 4000 / (17 + 30),
    "bytes-fetched-total": 4000,
    "records-per-request-avg": 20.0,  # of 10, received at 1001, and 30
    "records-per-request-max": 30.0,
    "records-fetched-rate": 40 / (19 + 30),
    "records-fetched-total": 40,
    "acknowledgements-send-rate": 40 / (15 + 30),  # 10 at 1005, 30 at 1011
    "acknowledgements-send-total": 40,
    "acknowledgements-error-rate": 20 / (8 + 30),
    "acknowledgements-error-total": 20,
    "fetch-latency-avg": 3500 / 3,  # of 500, 1000 and 2000
    "fetch-latency-max": 2000.0,
    "fetch-rate": 3 / (19 + 30),
    "fetch-total": 3,
    "fetch-throttle-time-avg": 500.0,  # of 0, 500 and 1000
    "fetch-throttle-time-max": 1000.0,
}


def test_every_metric_of_the_scenario_has_the_value_computed_by_hand() -> None:
    scenario = Scenario()
    scenario.run()

    values = scenario.values(1020.0)

    kip = {name: value for name, value in values.items() if name in AT_1020}
    assert 28 == len(kip)
    assert pytest.approx(AT_1020, rel=1e-12) == kip
    assert 5 == values["sharecons-renewals-total"]


def test_totals_stay_and_figures_of_windows_go() -> None:
    scenario = Scenario()
    scenario.run()
    scenario.values(1020.0)

    values = scenario.values(1080.0)  # more than 60 s after the last event

    for name, value in values.items():
        metric = METRICS[name]
        if metric.kind == "counter":
            assert AT_1020.get(name, value) == value
        elif name.endswith(("-avg", "-max")):
            assert math.isnan(value), name
        elif name.endswith(("-rate", "-per-hour")):
            assert value == 0.0, name
    assert 68.0 == values["last-poll-seconds-ago"]
    assert 72.0 == values["last-heartbeat-seconds-ago"]


def test_new_recorder_has_no_values() -> None:
    values = values_of(MetricsRecorder())

    for name, value in values.items():
        if name.endswith("-seconds-ago"):
            assert -1.0 == value
        elif name.endswith(("-avg", "-max")):
            assert math.isnan(value)
        else:
            assert 0 == value


def test_readers_have_polls_of_their_own() -> None:
    recorder = MetricsRecorder()
    recorder.clock = lambda: 10.0
    first, second = PollTimes(), PollTimes()

    recorder.on_poll_started(first, 0.0)
    recorder.on_poll_started(second, 1.0)
    recorder.on_poll_ended(second, 2.0)
    recorder.on_poll_ended(first, 4.0)
    recorder.on_poll_started(first, 6.0)
    recorder.on_poll_ended(first, 6.5)

    values = values_of(recorder)
    assert 6000.0 == values["time-between-poll-max"]
    assert 0.5 / 2.5 == values["poll-idle-ratio-avg"]
    assert 4.0 == values["last-poll-seconds-ago"]


def test_consumer_that_only_waits_is_idle_and_one_that_never_waits_is_not() -> None:
    waiting, working = MetricsRecorder(), MetricsRecorder()
    reader, other = PollTimes(), PollTimes()
    for second in range(10):
        waiting.on_poll_started(reader, second)
        waiting.on_poll_ended(reader, second + 1)
        working.on_poll_started(other, second)
        working.on_poll_ended(other, second)

    assert 1.0 == values_of(waiting)["poll-idle-ratio-avg"]
    assert 0.0 == values_of(working)["poll-idle-ratio-avg"]


def test_assignments_that_differ_and_first_ones_count_as_rebalances() -> None:
    recorder = MetricsRecorder()
    totals = []
    for epoch, assigned in [
        (0, ()),  # a join
        (1, (P0,)),
        (2, (P0,)),
        (2, (P0, P1)),
        (0, (P0, P1)),  # joined again, with the same partitions
        (3, ()),
        (-1, ()),  # the leave
    ]:
        response = heartbeat_response(*assigned)
        if epoch == -1:
            response = replace(response, assignment=None)
        recorder.on_heartbeat_response(heartbeat(epoch), response, 1.0, 2.0)
        totals.append(values_of(recorder)["rebalance-total"])

    assert [1, 2, 2, 3, 4, 5, 5] == totals
