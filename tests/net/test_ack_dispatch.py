"""What became of acknowledgements: what is counted, and who hears of it."""

import pytest

from sharecons.metrics.counters import Counters
from sharecons.net.ack_dispatch import AckDispatcher
from sharecons.protocol.acknowledge.result_log import (
    AcknowledgeError,
    AcknowledgeResult,
    ResultLog,
)
from sharecons.record import ACCEPT

ERROR = AcknowledgeError(121, "INVALID_RECORD_STATE", "not yours")


class Listener:
    def __init__(self, has_ack_callback):
        self.has_ack_callback = has_ack_callback
        self.heard = []

    def on_ack_results(self, results):
        self.heard += results


def told_of(journal, hearer):
    counters = Counters()
    reports = AckDispatcher(journal, counters, hearer)
    told = reports.try_dispatch()
    counts = counters.snapshot()
    return told, [
        counts["acknowledgements-send-total"],
        counts["acknowledgements-error-total"],
    ]


@pytest.mark.parametrize("has_ack_callback", [True, False])
def test_a_journal_hears_what_somebody_is_called_back_with(has_ack_callback):
    journal = ResultLog(lambda: None, lambda: 0.0)

    AckDispatcher(journal, Counters(), Listener(has_ack_callback))

    assert has_ack_callback == journal.has_listener


def test_what_nobody_hears_of_is_counted_once():
    journal, hearer = (
        ResultLog(lambda: None, lambda: 0.0),
        Listener(has_ack_callback=False),
    )
    journal.applied = 5
    journal.results = [AcknowledgeResult("orders", 0, 3, 4, ACCEPT, ERROR)]

    assert (True, [7, 2]) == told_of(journal, hearer)
    assert [(3, 4)] == [(r.first_offset, r.last_offset) for r in hearer.heard]
    assert (True, [0, 0]) == told_of(journal, hearer)


def test_a_callback_is_called_in_a_task():
    journal, hearer = (
        ResultLog(lambda: None, lambda: 0.0),
        Listener(has_ack_callback=True),
    )
    journal.results = [AcknowledgeResult("orders", 0, 3, 4, ACCEPT, None)]

    assert (False, [0, 0]) == told_of(journal, hearer)
    assert [] == hearer.heard
