"""A member whose topics are partly forbidden joins the group with the others."""

from sharecons.protocol.codes import Code
from sharecons.protocol.group.metadata import Metadata
from tests.protocol.membership_harness import (
    error_response,
    exchange_find_coordinator,
    exchange_heartbeat,
    heartbeat_response,
    new_member,
    next_heartbeat,
)
from tests.protocol.test_metadata import absent, described, exchange, topic

FORBIDDEN = Code.TOPIC_AUTHORIZATION_FAILED
ORDERS = frozenset({"orders"})


def rejected_member(*topics):
    """Return a member whose join was rejected, and the time of its next heartbeat."""
    membership = new_member(*topics)
    exchange_find_coordinator(membership, now=0.0)
    exchange_heartbeat(membership, error_response(FORBIDDEN), now=0.0)
    return membership, membership.next_deadline(0.0)


def test_rejected_member_joins_without_the_forbidden_topic():
    membership, now = rejected_member("orders", "refunds")
    membership.exclude_topics(ORDERS, now)

    assert ("refunds",) == next_heartbeat(membership, now).topics


def test_topic_that_becomes_allowed_is_subscribed_immediately():
    membership, now = rejected_member("orders", "refunds")
    membership.exclude_topics(ORDERS, now)
    exchange_heartbeat(membership, heartbeat_response(), now=now)
    membership.exclude_topics(frozenset(), now + 0.05)

    assert now + 0.05 == membership.next_deadline(now + 0.05)
    assert ("orders", "refunds") == next_heartbeat(membership, now + 0.05).topics


def test_topic_that_becomes_allowed_during_a_heartbeat_is_subscribed_after_it():
    membership, now = rejected_member("orders", "refunds")
    membership.exclude_topics(ORDERS, now)
    request = next_heartbeat(membership, now)
    membership.exclude_topics(frozenset(), now)
    membership.on_response(request, heartbeat_response(), now)

    assert now == membership.next_deadline(now)
    assert ("orders", "refunds") == next_heartbeat(membership, now).topics


def test_member_with_only_forbidden_topics_subscribes_to_them_again():
    membership, now = rejected_member("orders")
    membership.exclude_topics(ORDERS, now)

    assert ("orders",) == next_heartbeat(membership, now).topics


def test_member_that_was_not_rejected_subscribes_to_all_topics():
    """The metadata can be older than an ACL."""
    membership = new_member("orders", "refunds")
    exchange_find_coordinator(membership, now=0.0)
    membership.exclude_topics(ORDERS, 0.0)

    assert ("orders", "refunds") == next_heartbeat(membership, now=0.0).topics


def test_new_subscription_includes_forbidden_topics():
    membership, now = rejected_member("orders", "refunds")
    membership.exclude_topics(ORDERS, now)
    membership.subscribe(("orders", "claims"), now)

    assert ("orders", "claims") == next_heartbeat(membership, now).topics


def test_metadata_returns_the_forbidden_topics():
    routing = Metadata()
    routing.set_subscription(("orders", "refunds"), now=0.0)
    exchange(routing, described(absent("orders", error=FORBIDDEN), absent("refunds")))
    forbidden = routing.unauthorized_topics()
    now = routing.next_deadline(0.0)
    exchange(routing, described(topic((1, 5))), now)

    assert (ORDERS, frozenset()) == (forbidden, routing.unauthorized_topics())


def test_time_of_metadata_is_the_time_of_its_request():
    routing = Metadata()
    routing.set_subscription(("orders",), now=1.0)
    request = routing.next_request(1.0)
    before = routing.requested_at
    routing.on_response(request, described(absent("orders", error=FORBIDDEN)), 2.0)

    assert before < 1.0
    assert 1.0 == routing.requested_at
