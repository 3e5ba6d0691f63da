"""A leader machine's answers, and what is asked after each."""

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
from sharecons.protocol.messages import Range, ShareFetch, ShareFetched, SharePartition
from sharecons.record import ACCEPT
from tests.protocol.making import NODE, P0, SETTINGS, TOPIC, TOPIC_ID, fetched, part

LOST = ConnectionFailedError("the broker closed the connection")


class Application:
    """Works a record when it is let; notes what happens in which order."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reports = True
        self.goes_on_here = False
        self.handed: list[Lease] = []
        self.requests: list[ShareFetch] = []
        self.pace = Prefetch(500)
        self.pace.waiting = 1
        self.pace.allowance = 500
        acknowledgements = AckBatcher(
            lambda: None, ResultLog(lambda: None, lambda: 0.0)
        )
        self.machine = Leader(NODE, SETTINGS, self.pace, acknowledgements)
        self.machine.topics = {TOPIC_ID: TOPIC}
        self.machine.set_partitions(frozenset({P0}))
        self.led = LeaderIO(
            self.machine,
            AutoResetEvent(),
            lambda: self.now,
            Counters(),
            self.acquired,
            lambda: self.reports,
            10.0,
        )

    def acquired(self, leases: list[Lease], here: bool) -> bool:
        self.handed += leases
        if here and self.goes_on_here:
            self.work()
            self.machine.flush_acks()  # as commit() does
            return True
        return False

    def begin(self) -> None:
        """Send the first fetch, as the leader's task does."""
        request = self.machine.next_request(self.now)
        assert isinstance(request, ShareFetch)
        self.requests.append(request)
        self.led.first_request(request)

    def work(self) -> None:
        for lease in self.handed:
            ((first, last, _),) = lease.acquired
            lease.unpacked(range(first, last + 1))
            self.pace.handed_out(lease.count, self.now)
            lease.acknowledge_open(0, lease.count, ACCEPT)
            self.pace.asked(self.now + 1e-4)
        self.handed.clear()

    def told(self, offset: int) -> NextRequest | Deferred | None:
        answer = fetched(part(P0, (offset, offset)))
        assert isinstance(answer, ShareFetched)
        return self.led.on_response(answer)

    def told_much(self, turn: int) -> NextRequest | Deferred | None:
        answer = fetched(part(P0, (500 * turn, 500 * turn + 499)))
        assert isinstance(answer, ShareFetched)
        return self.led.on_response(answer)

    def work_in(self, seconds: float) -> None:
        """Work what is there in so many seconds, and ask for more."""
        for lease in self.handed:
            lease.unpacked(range(lease.acquired[0][0], lease.acquired[0][1] + 1))
            self.pace.handed_out(lease.count, self.now)
            lease.acknowledge_open(0, lease.count, ACCEPT)
            self.now += seconds
            self.pace.asked(self.now)
        self.handed.clear()

    def trickle(self, records: int, seconds: float) -> NextRequest | Deferred | None:
        """Give what follows the last of so many records, which is not worked yet."""
        self.begin()
        following: NextRequest | Deferred | None = None
        for offset in range(records):
            self.work()
            if isinstance(following, Deferred):
                assert following.find() is not None
            self.now += seconds
            following = self.told(offset)
        return following


def looked(following: NextRequest | Deferred | None) -> NextRequest | None:
    assert isinstance(following, Deferred)
    found = following.find()
    assert found is None or isinstance(found.request, ShareFetch)
    return found


def test_where_records_come_alone_the_next_fetch_follows_when_the_application_has_run():
    application = Application()
    told = application.trickle(12, 0.001)
    application.work()

    following = looked(told)

    assert following is not None
    assert following.on_partial is None


def test_what_an_application_said_that_went_on_at_once_is_in_the_next_fetch():
    application = Application()
    application.goes_on_here = True
    application.begin()

    following = application.told(0)

    assert isinstance(following, NextRequest)
    assert following.request.acknowledgements == {P0: (Range(0, 0, bytes([ACCEPT])),)}


def test_nobody_goes_on_before_a_fetch_that_leaves_first():
    application = Application()
    much_asked(application)
    application.goes_on_here = True

    application.told_much(4)

    assert application.handed, "not worked yet"


def test_nobody_is_to_go_on_where_nothing_came():
    application = Application()
    application.goes_on_here = True
    application.begin()

    assert isinstance(application.led.on_response(fetched()), Deferred)


SIX = frozenset(SharePartition(TOPIC_ID, number) for number in range(6))


def much_asked(application: Application) -> NextRequest:
    """Fetches bring much each; gives what is asked next, which is not answered yet."""
    application.machine.set_partitions(SIX)
    application.begin()
    following: NextRequest | Deferred | None = None
    for turn in range(4):
        following = application.told_much(turn)
        application.work_in(1e-3)
        if following is None:
            application.begin()
    assert isinstance(following, NextRequest)
    return following


def test_where_much_lies_ready_another_fetch_is_found_while_the_answer_comes():
    application = Application()
    first = much_asked(application)
    assert first.on_partial is not None

    second = first.on_partial()

    assert second is not None
    assert isinstance(second.request, ShareFetch)
    assert first.on_partial() is None, "two are enough"
    told = application.told_much(4)
    application.work_in(1e-3)
    assert looked(told) is None
    third = second.on_partial and second.on_partial()
    assert third is not None
    assert isinstance(third.request, ShareFetch)


def test_while_much_comes_nothing_is_asked_that_would_keep_a_task_from_telling():
    application = Application()
    first = much_asked(application)
    application.reports = False
    assert first.on_partial is not None

    assert first.on_partial() is None
    application.reports = True
    application.machine.events.append(UnexpectedResponse("to be told"))
    assert first.on_partial() is None
    application.machine.events.clear()
    assert first.on_partial() is not None


def test_what_a_task_is_to_tell_is_told_by_it():
    application = Application()
    told = application.trickle(12, 0.001)
    application.work()
    assert looked(told) is not None
    application.reports = False

    assert application.told(12) is None
    assert application.handed


def test_what_a_task_is_to_tell_is_told_when_two_were_answered():
    application = Application()
    first = much_asked(application)
    assert first.on_partial is not None
    assert first.on_partial() is not None
    application.reports = False

    assert application.told_much(4) is None
    assert len(application.handed) == 1
    assert application.told_much(5) is None
    assert application.machine.events, "for our task, when it has sent the next"


def test_a_connection_that_broke_leaves_nothing_to_be_heard():
    application = Application()
    first = much_asked(application)
    assert first.on_partial is not None
    assert first.on_partial() is not None

    application.machine.failed(first.request, LOST, application.now)
    application.machine.events.clear()  # as our task does
    application.now = application.machine.next_deadline(application.now)
    application.begin()

    following = application.told(12)
    application.work()
    assert looked(following) is not None
    assert 0 == application.requests[-1].share_session_epoch
