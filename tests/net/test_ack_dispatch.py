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


class Hearer:
    def __init__(self, calls_back):
        self.calls_back = calls_back
        self.heard = []

    def acknowledged(self, results):
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


@pytest.mark.parametrize("calls_back", [True, False])
def test_a_journal_hears_what_somebody_is_called_back_with(calls_back):
    journal = ResultLog(lambda: None, lambda: 0.0)

    AckDispatcher(journal, Counters(), Hearer(calls_back))

    assert calls_back == journal.has_listener


def test_what_nobody_hears_of_is_counted_once():
    journal, hearer = ResultLog(lambda: None, lambda: 0.0), Hearer(calls_back=False)
    journal.applied = 5
    journal.results = [AcknowledgeResult("orders", 0, 3, 4, ACCEPT, ERROR)]

    assert (True, [7, 2]) == told_of(journal, hearer)
    assert [(3, 4)] == [(r.first_offset, r.last_offset) for r in hearer.heard]
    assert (True, [0, 0]) == told_of(journal, hearer)


def test_a_callback_is_called_in_a_task():
    journal, hearer = ResultLog(lambda: None, lambda: 0.0), Hearer(calls_back=True)
    journal.results = [AcknowledgeResult("orders", 0, 3, 4, ACCEPT, None)]

    assert (False, [0, 0]) == told_of(journal, hearer)
    assert [] == hearer.heard
