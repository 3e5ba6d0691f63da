"""Results of acknowledgements: counting and dispatching them."""

import pytest

from sharecons.member.ack_dispatcher import AckDispatcher
from sharecons.member.group_configs import GroupConfigReader
from sharecons.metrics.catalog import values_of
from sharecons.metrics.recorder import MetricsRecorder
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeFailure,
    AcknowledgeResult,
    ResultLog,
)
from sharecons.record import ACCEPT

ERROR = AcknowledgeFailure(121, "INVALID_RECORD_STATE", "not yours")


class Listener:
    def __init__(self, has_ack_callback):
        self.has_ack_callback = has_ack_callback
        self.configs = GroupConfigReader("billing", 5)
        self.received = []

    def on_ack_results(self, results):
        self.received += results


def dispatched(result_log, listener):
    recorder = MetricsRecorder()
    dispatcher = AckDispatcher(result_log, recorder, listener, log_fields={})
    had_results = dispatcher.dispatch()
    values = values_of(recorder)
    return had_results, [
        values["acknowledgements-error-total"],
        values["sharecons-lock-overruns-total"],
    ]


@pytest.mark.parametrize("has_ack_callback", [True, False])
def test_result_log_has_a_listener_if_there_is_a_callback(has_ack_callback):
    result_log = ResultLog(lambda: None, lambda: 0.0)

    listener = Listener(has_ack_callback)
    AckDispatcher(result_log, MetricsRecorder(), listener, log_fields={})

    assert has_ack_callback == result_log.has_listener


@pytest.mark.parametrize("has_ack_callback", [True, False])
def test_results_are_counted_and_passed_on_once(has_ack_callback):
    result_log = ResultLog(lambda: None, lambda: 0.0)
    listener = Listener(has_ack_callback)
    result_log.overrun_count = 5
    result_log.results = [AcknowledgeResult("orders", 0, 3, 4, ACCEPT, ERROR)]

    assert (True, [2, 5]) == dispatched(result_log, listener)
    assert [(3, 4)] == [(r.first_offset, r.last_offset) for r in listener.received]
    assert (False, [0, 0]) == dispatched(result_log, listener)
    assert 1 == len(listener.received)
