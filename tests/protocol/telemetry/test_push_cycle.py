"""When a client requests a subscription and pushes, without and with errors."""

import math
from uuid import UUID

import pytest

from sharecons.errors import (
    AuthenticationError,
    ConnectionFailedError,
    ProtocolError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from sharecons.protocol.codes import Code
from sharecons.protocol.telemetry.messages import (
    GetTelemetrySubscriptions,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryResponse,
)
from sharecons.protocol.telemetry.push_cycle import DEFAULT_INTERVAL, Push, PushCycle

CLIENT = UUID(int=7)
OTHER = UUID(int=8)
INTERVAL = 60.0
ZSTD, LZ4, GZIP, SNAPPY = 4, 3, 1, 2


def subscribed(**changes):
    values = {
        "error": 0,
        "client_instance_id": CLIENT,
        "subscription_id": 42,
        "compression_types": (ZSTD, LZ4, GZIP, SNAPPY),
        "push_interval": INTERVAL,
        "max_bytes": 1000,
        "delta_temporality": True,
        "requested_metrics": ("*",),
        **changes,
    }
    return GetTelemetrySubscriptionsResponse(**values)


def rejected(code):
    return subscribed(
        error=code,
        client_instance_id=None,
        push_interval=0.0,
        requested_metrics=(),
    )


def pushed(error=0):
    return PushTelemetryResponse(error=error)


class Driven:
    """A machine with the time; `send` passes the next request and its response."""

    def __init__(self, spread=0.5):
        self.cycle = PushCycle(spread)
        self.now = 100.0

    def send(self, response):
        request = self.next()
        assert request is not None, "no request is due"
        if isinstance(response, Exception):
            self.cycle.on_error(request, response, self.now)
        else:
            self.cycle.on_response(request, response, self.now)
        return request

    def next(self):
        return self.cycle.next_request(self.now)

    def wait(self):
        """Move to the next deadline; return the seconds that passed."""
        deadline = self.cycle.next_deadline(self.now)
        assert not math.isinf(deadline), "nothing will be due"
        passed = max(0.0, deadline - self.now)
        if passed:
            self.now += passed * 0.999
            assert self.next() is None, "a request before the deadline"
            self.now = deadline
        return passed

    @property
    def has_stopped(self):
        stopped = self.cycle.finished and bool(self.cycle.stop_reason)
        if stopped:
            assert math.inf == self.cycle.next_deadline(self.now)
            assert self.next() is None
        return stopped


@pytest.fixture
def driven():
    return Driven()


@pytest.fixture
def pushing(driven):
    """A machine that has pushed once; the second push is due."""
    driven.send(subscribed())
    driven.wait()
    driven.send(pushed())
    driven.wait()
    return driven


# The cycle without errors.


def test_first_request_has_no_id_and_is_due_immediately(driven):
    assert 0.0 == driven.wait()
    assert GetTelemetrySubscriptions(client_instance_id=None) == driven.next()


@pytest.mark.parametrize(("spread", "share"), [(0.0, 0.5), (0.5, 1.0), (1.0, 1.5)])
def test_first_push_is_due_after_half_to_one_and_a_half_intervals(spread, share):
    driven = Driven(spread)
    driven.send(subscribed())

    assert share * INTERVAL == pytest.approx(driven.wait())
    assert isinstance(driven.next(), Push)


def test_further_pushes_are_due_after_the_interval(driven):
    driven.send(subscribed())
    driven.wait()

    for _ in range(3):
        push = driven.send(pushed())
        assert CLIENT == push.client_instance_id
        assert 42 == push.subscription.subscription_id
        assert not push.terminating
        assert INTERVAL == pytest.approx(driven.wait())


def test_without_wanted_metrics_the_subscription_is_requested_after_the_interval(
    driven,
):
    driven.send(subscribed(requested_metrics=()))

    assert driven.cycle.subscription is None
    assert INTERVAL == pytest.approx(driven.wait())
    assert GetTelemetrySubscriptions(client_instance_id=CLIENT) == driven.next()


def test_id_stays_if_a_later_response_has_none(driven):
    driven.send(subscribed(requested_metrics=()))
    driven.wait()
    driven.send(subscribed(client_instance_id=None))

    assert CLIENT == driven.cycle.client_instance_id
    driven.wait()
    assert CLIENT == driven.next().client_instance_id


def test_first_response_without_an_id_stops(driven):
    driven.send(subscribed(client_instance_id=None))

    assert driven.has_stopped
    assert "no client instance id" in driven.cycle.stop_reason


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_invalid_interval_is_replaced_by_five_minutes(driven, seconds):
    driven.send(subscribed(push_interval=seconds))

    assert DEFAULT_INTERVAL == pytest.approx(driven.wait())


def test_interval_is_at_least_a_tenth_of_a_second(driven):
    driven.send(subscribed(push_interval=0.001))

    assert 0.1 == pytest.approx(driven.wait())


# The contents of a push.


@pytest.mark.parametrize(
    ("prefixes", "name", "expected"),
    [
        (("*",), "anything", True),
        (("",), "anything", True),
        (("org.apache.kafka.consumer.",), "org.apache.kafka.consumer.x", True),
        (("org.apache.kafka.consumer.",), "org.apache.kafka.producer.x", False),
        (("a.", "b."), "b.x", True),
        (("a.", "*"), "b.x", False),
    ],
)
def test_names_are_selected_by_prefix(driven, prefixes, name, expected):
    driven.send(subscribed(requested_metrics=prefixes))

    assert expected == driven.cycle.subscription.selects(name)


@pytest.mark.parametrize(
    ("accepted", "codec"),
    [
        ((ZSTD, LZ4), ZSTD),
        ((SNAPPY, ZSTD), SNAPPY),
        ((9, GZIP), GZIP),
        ((9,), 0),
        ((), 0),
    ],
)
def test_compression_is_the_first_known_codec_of_the_list(driven, accepted, codec):
    driven.send(subscribed(compression_types=accepted))

    assert codec == driven.cycle.subscription.compression


# The error table: each row, for both requests.

FOR_GOOD = [
    Code.INVALID_REQUEST,
    Code.INVALID_RECORD,
    Code.UNSUPPORTED_VERSION,
    Code.UNKNOWN_SERVER_ERROR,
    9999,
]
IMMEDIATELY = [Code.UNKNOWN_SUBSCRIPTION_ID, Code.UNSUPPORTED_COMPRESSION_TYPE]
AFTER_THE_INTERVAL = [Code.TELEMETRY_TOO_LARGE, Code.THROTTLING_QUOTA_EXCEEDED]


@pytest.mark.parametrize("code", FOR_GOOD)
def test_subscription_rejected_for_good_stops(driven, code):
    driven.send(rejected(code))

    assert driven.has_stopped
    name = Code(code).name if code != 9999 else "9999"
    assert name in driven.cycle.stop_reason


@pytest.mark.parametrize("code", FOR_GOOD)
def test_push_rejected_for_good_stops(pushing, code):
    pushing.send(pushed(code))

    assert pushing.has_stopped
    assert pushing.cycle.subscription is None


@pytest.mark.parametrize("code", IMMEDIATELY)
def test_outdated_push_requests_the_subscription_immediately(pushing, code):
    pushing.send(pushed(code))

    assert 0.0 == pushing.wait()
    assert GetTelemetrySubscriptions(client_instance_id=CLIENT) == pushing.send(
        subscribed(subscription_id=43)
    )
    pushing.wait()
    assert 43 == pushing.next().subscription.subscription_id


def test_push_after_an_outdated_one_is_due_after_a_whole_interval():
    driven = Driven(spread=0.0)
    driven.send(subscribed())
    driven.wait()
    driven.send(pushed(Code.UNKNOWN_SUBSCRIPTION_ID))
    driven.send(subscribed(push_interval=2 * INTERVAL))

    assert 2 * INTERVAL == pytest.approx(driven.wait())


@pytest.mark.parametrize("code", IMMEDIATELY)
def test_subscription_is_requested_again_immediately_once(driven, code):
    driven.send(rejected(code))
    assert 0.0 == driven.wait()

    for _ in range(3):
        driven.send(rejected(code))
        assert DEFAULT_INTERVAL == pytest.approx(driven.wait())


def test_accepted_push_allows_another_immediate_request(pushing):
    for _ in range(3):
        pushing.send(pushed(Code.UNKNOWN_SUBSCRIPTION_ID))
        assert 0.0 == pushing.wait()
        pushing.send(subscribed())
        pushing.wait()
        pushing.send(pushed())
        pushing.wait()


def test_rejected_codec_is_not_used_again(pushing):
    codecs = []
    for _ in range(5):
        request = pushing.send(pushed(Code.UNSUPPORTED_COMPRESSION_TYPE))
        codecs.append(request.subscription.compression)
        pushing.wait()
        pushing.send(subscribed())
        pushing.wait()

    assert [ZSTD, LZ4, GZIP, SNAPPY, 0] == codecs


@pytest.mark.parametrize("code", AFTER_THE_INTERVAL)
def test_throttled_or_too_large_push_waits_for_the_interval(pushing, code):
    pushing.send(pushed(code))

    assert INTERVAL == pytest.approx(pushing.wait())
    assert isinstance(pushing.next(), GetTelemetrySubscriptions)


PASSING = [
    ConnectionFailedError("lost"),
    RequestTimedOutError("late"),
    ProtocolError("garbage"),
]
LASTING = [UnsupportedVersionError("old"), AuthenticationError("no")]


@pytest.mark.parametrize(
    "response", [*map(rejected, AFTER_THE_INTERVAL), *PASSING], ids=repr
)
def test_subscription_request_after_a_passing_error_waits_five_minutes(
    driven, response
):
    driven.send(response)

    assert DEFAULT_INTERVAL == pytest.approx(driven.wait())
    assert isinstance(driven.next(), GetTelemetrySubscriptions)


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_failed_push_waits_five_minutes_for_the_subscription(pushing, error):
    pushing.send(error)

    assert DEFAULT_INTERVAL == pytest.approx(pushing.wait())
    assert isinstance(pushing.next(), GetTelemetrySubscriptions)


@pytest.mark.parametrize("error", LASTING, ids=repr)
def test_lasting_error_stops(driven, error):
    driven.send(error)

    assert driven.has_stopped
    assert str(error) in driven.cycle.stop_reason


# Closing.


def test_close_pushes_once_more_and_finishes(pushing):
    pushing.now -= INTERVAL / 2
    pushing.cycle.close()

    assert not pushing.cycle.finished
    assert 0.0 == pushing.wait()
    assert pushing.send(pushed()).terminating
    assert pushing.cycle.finished
    assert pushing.next() is None
    assert "" == pushing.cycle.stop_reason


@pytest.mark.parametrize(
    "response", [pushed(Code.THROTTLING_QUOTA_EXCEEDED), ConnectionFailedError("lost")]
)
def test_last_push_is_not_repeated(pushing, response):
    pushing.cycle.close()
    pushing.send(response)

    assert pushing.cycle.finished


def test_close_before_a_subscription_pushes_nothing(driven):
    driven.cycle.close()

    assert driven.cycle.finished
    assert driven.next() is None


def test_close_without_wanted_metrics_pushes_nothing(driven):
    driven.send(subscribed(requested_metrics=()))
    driven.cycle.close()

    assert driven.cycle.finished


def test_close_while_the_subscription_is_requested_pushes_nothing(driven):
    request = driven.next()
    driven.cycle.close()
    driven.cycle.on_response(request, subscribed(), driven.now)

    assert driven.cycle.finished


@pytest.mark.parametrize(
    "response",
    [
        pushed(),
        pushed(Code.THROTTLING_QUOTA_EXCEEDED),
        pushed(Code.UNKNOWN_SERVER_ERROR),
        ConnectionFailedError("lost"),
    ],
    ids=repr,
)
def test_close_during_a_push_is_followed_by_the_last_one(pushing, response):
    request = pushing.next()
    pushing.cycle.close()
    if isinstance(response, Exception):
        pushing.cycle.on_error(request, response, pushing.now)
    else:
        pushing.cycle.on_response(request, response, pushing.now)

    assert pushing.send(pushed()).terminating
    assert pushing.cycle.finished


def test_close_after_a_stop_pushes_nothing(pushing):
    pushing.cycle.stop("no encoder")
    pushing.cycle.close()

    assert pushing.has_stopped
