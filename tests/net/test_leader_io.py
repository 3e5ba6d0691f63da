"""The responses of a leader, and the requests that follow them."""

from sharecons.errors import ConnectionFailedError
from sharecons.metrics.counters import Counters
from sharecons.net.io.event import AutoResetEvent
from sharecons.net.io.pipeline import Deferred, NextRequest
from sharecons.net.leader_io import LeaderIO
from sharecons.protocol.acknowledge.batcher import AckBatcher
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import ResultLog
from sharecons.protocol.fetch.events import UnexpectedResponse
from sharecons.protocol.fetch.leader import Leader
from sharecons.protocol.fetch.prefetch import Prefetch
from sharecons.protocol.messages import (
    Range,
    ShareFetch,
    ShareFetchResponse,
    SharePartition,
)
from sharecons.record import ACCEPT
from tests.protocol.message_factories import (
    NODE_ID,
    P0,
    SETTINGS,
    TOPIC,
    TOPIC_ID,
    fetch_response,
    partition_response,
)

LOST = ConnectionFailedError("the broker closed the connection")


class Application:
    """Works a record when it is let; notes what happens in which order."""

    def __init__(self) -> None:
        self.now = 0.0
        self.can_dispatch = True
        self.can_resume = False
        self.leases: list[Lease] = []
        self.requests: list[ShareFetch] = []
        self.prefetch = Prefetch(500)
        self.prefetch.waiting_readers = 1
        self.prefetch.allowance = 500
        batcher = AckBatcher(lambda: None, ResultLog(lambda: None, lambda: 0.0))
        self.machine = Leader(NODE_ID, SETTINGS, self.prefetch, batcher)
        self.machine.topic_names = {TOPIC_ID: TOPIC}
        self.machine.set_partitions(frozenset({P0}))
        self.leader_io = LeaderIO(
            self.machine,
            AutoResetEvent(),
            lambda: self.now,
            Counters(),
            self.on_acquired,
            lambda: self.can_dispatch,
            10.0,
        )

    def on_acquired(self, leases: list[Lease], resume_now: bool) -> bool:
        self.leases += leases
        if resume_now and self.can_resume:
            self.process()
            self.machine.flush_acks()  # as commit() does
            return True
        return False

    def begin(self) -> None:
        """Send the first fetch, as the leader's task does."""
        request = self.machine.next_request(self.now)
        assert isinstance(request, ShareFetch)
        self.requests.append(request)
        self.leader_io.first_request(request)

    def process(self) -> None:
        for lease in self.leases:
            ((first, last, _),) = lease.acquired
            lease.set_offsets(range(first, last + 1))
            self.prefetch.on_delivered(lease.count, self.now)
            lease.acknowledge_open(0, lease.count, ACCEPT)
            self.prefetch.on_requested(self.now + 1e-4)
        self.leases.clear()

    def receive(self, offset: int) -> NextRequest | Deferred | None:
        answer = fetch_response(partition_response(P0, (offset, offset)))
        assert isinstance(answer, ShareFetchResponse)
        return self.leader_io.on_response(answer)

    def receive_much(self, turn: int) -> NextRequest | Deferred | None:
        answer = fetch_response(partition_response(P0, (500 * turn, 500 * turn + 499)))
        assert isinstance(answer, ShareFetchResponse)
        return self.leader_io.on_response(answer)

    def process_in(self, seconds: float) -> None:
        """Process all records, each lease in so many seconds, and read again."""
        for lease in self.leases:
            lease.set_offsets(range(lease.acquired[0][0], lease.acquired[0][1] + 1))
            self.prefetch.on_delivered(lease.count, self.now)
            lease.acknowledge_open(0, lease.count, ACCEPT)
            self.now += seconds
            self.prefetch.on_requested(self.now)
        self.leases.clear()

    def receive_single(
        self, records: int, seconds: float
    ) -> NextRequest | Deferred | None:
        """Receive records one by one; return the result for the last one."""
        self.begin()
        following: NextRequest | Deferred | None = None
        for offset in range(records):
            self.process()
            if isinstance(following, Deferred):
                assert following.find() is not None
            self.now += seconds
            following = self.receive(offset)
        return following


def found_by(following: NextRequest | Deferred | None) -> NextRequest | None:
    assert isinstance(following, Deferred)
    found = following.find()
    assert found is None or isinstance(found.request, ShareFetch)
    return found


def test_next_fetch_of_single_records_follows_the_application():
    application = Application()
    receive = application.receive_single(12, 0.001)
    application.process()

    following = found_by(receive)

    assert following is not None
    assert following.on_partial is None


def test_acknowledgements_of_a_resumed_reader_are_in_the_next_fetch():
    application = Application()
    application.can_resume = True
    application.begin()

    following = application.receive(0)

    assert isinstance(following, NextRequest)
    assert following.request.acknowledgements == {P0: (Range(0, 0, bytes([ACCEPT])),)}


def test_no_reader_is_resumed_before_a_fetch_with_backlog_is_sent():
    application = Application()
    with_backlog(application)
    application.can_resume = True

    application.receive_much(4)

    assert application.leases, "not worked yet"


def test_empty_response_resumes_no_reader():
    application = Application()
    application.can_resume = True
    application.begin()

    assert isinstance(application.leader_io.on_response(fetch_response()), Deferred)


SIX = frozenset(SharePartition(TOPIC_ID, number) for number in range(6))


def with_backlog(application: Application) -> NextRequest:
    """Receive large responses; return the next request, which is in flight."""
    application.machine.set_partitions(SIX)
    application.begin()
    following: NextRequest | Deferred | None = None
    for turn in range(4):
        following = application.receive_much(turn)
        application.process_in(1e-3)
        if following is None:
            application.begin()
    assert isinstance(following, NextRequest)
    return following


def test_backlog_pipelines_a_fetch_during_the_response():
    application = Application()
    first = with_backlog(application)
    assert first.on_partial is not None

    second = first.on_partial()

    assert second is not None
    assert isinstance(second.request, ShareFetch)
    assert first.on_partial() is None, "two are enough"
    receive = application.receive_much(4)
    application.process_in(1e-3)
    assert found_by(receive) is None
    third = second.on_partial and second.on_partial()
    assert third is not None
    assert isinstance(third.request, ShareFetch)


def test_pending_events_prevent_a_pipelined_fetch():
    application = Application()
    first = with_backlog(application)
    application.can_dispatch = False
    assert first.on_partial is not None

    assert first.on_partial() is None
    application.can_dispatch = True
    application.machine.events.append(UnexpectedResponse("to be told"))
    assert first.on_partial() is None
    application.machine.events.clear()
    assert first.on_partial() is not None


def test_results_for_a_task_end_the_pipeline():
    application = Application()
    receive = application.receive_single(12, 0.001)
    application.process()
    assert found_by(receive) is not None
    application.can_dispatch = False

    assert application.receive(12) is None
    assert application.leases


def test_results_for_a_task_wait_for_two_responses():
    application = Application()
    first = with_backlog(application)
    assert first.on_partial is not None
    assert first.on_partial() is not None
    application.can_dispatch = False

    assert application.receive_much(4) is None
    assert len(application.leases) == 1
    assert application.receive_much(5) is None
    assert application.machine.events, "for our task, when it has sent the next"


def test_lost_connection_discards_requests_in_flight():
    application = Application()
    first = with_backlog(application)
    assert first.on_partial is not None
    assert first.on_partial() is not None

    application.machine.on_error(first.request, LOST, application.now)
    application.machine.events.clear()  # as our task does
    application.now = application.machine.next_deadline(application.now)
    application.begin()

    following = application.receive(12)
    application.process()
    assert found_by(following) is not None
    assert 0 == application.requests[-1].share_session_epoch
