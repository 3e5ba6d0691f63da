"""A topic that may not even be described does not keep a member out of the group."""

from sharecons.protocol.codes import Code
from sharecons.protocol.group.metadata import Metadata
from tests.protocol.group import admitted, error, found, looking, member, said
from tests.protocol.test_metadata import absent, described, exchange, topic

FORBIDDEN = Code.TOPIC_AUTHORIZATION_FAILED
ORDERS = frozenset({"orders"})


def rejected(*topics):
    """Return a member whose join was rejected, and the time of its next heartbeat."""
    membership = member(*topics)
    membership.answered(looking(membership, now=0.0), found(), now=0.0)
    membership.answered(said(membership, now=0.0), error(FORBIDDEN), now=0.0)
    return membership, membership.next_deadline(0.0)


def test_rejected_member_joins_without_the_forbidden_topic():
    membership, now = rejected("orders", "refunds")
    membership.forbid(ORDERS, now)

    assert ("refunds",) == said(membership, now).topics


def test_admitted_member_does_not_repeat_what_it_left_out():
    membership, now = rejected("orders", "refunds")
    membership.forbid(ORDERS, now)
    membership.answered(said(membership, now), admitted(), now)
    now = membership.next_deadline(now)

    assert said(membership, now).topics is None


def test_allowed_topic_is_subscribed_at_once():
    membership, now = rejected("orders", "refunds")
    membership.forbid(ORDERS, now)
    membership.answered(said(membership, now), admitted(), now)
    membership.forbid(frozenset(), now + 0.05)

    assert now + 0.05 == membership.next_deadline(now + 0.05)
    assert ("orders", "refunds") == said(membership, now + 0.05).topics


def test_topic_that_is_allowed_while_a_heartbeat_is_in_flight_follows_it():
    membership, now = rejected("orders", "refunds")
    membership.forbid(ORDERS, now)
    request = said(membership, now)
    membership.forbid(frozenset(), now)
    membership.answered(request, admitted(), now)

    assert now == membership.next_deadline(now)
    assert ("orders", "refunds") == said(membership, now).topics


def test_member_whose_topics_are_all_forbidden_goes_on_asking_for_them():
    membership, now = rejected("orders")
    membership.forbid(ORDERS, now)

    assert ("orders",) == said(membership, now).topics


def test_member_that_was_not_rejected_leaves_nothing_out():
    """Metadata may be older than an ACL."""
    membership = member("orders", "refunds")
    membership.answered(looking(membership, now=0.0), found(), now=0.0)
    membership.forbid(ORDERS, 0.0)

    assert ("orders", "refunds") == said(membership, now=0.0).topics


def test_new_subscription_is_tried_as_a_whole():
    membership, now = rejected("orders", "refunds")
    membership.forbid(ORDERS, now)
    membership.subscribe(("orders", "claims"), now)

    assert ("orders", "claims") == said(membership, now).topics


def test_metadata_names_the_forbidden_topics():
    routing = Metadata()
    routing.subscribed(("orders", "refunds"), now=0.0)
    exchange(routing, described(absent("orders", error=FORBIDDEN), absent("refunds")))
    forbidden = routing.forbidden()
    now = routing.next_deadline(0.0)
    exchange(routing, described(topic((1, 5))), now)

    assert (ORDERS, frozenset()) == (forbidden, routing.forbidden())


def test_metadata_is_as_old_as_its_request():
    routing = Metadata()
    routing.subscribed(("orders",), now=1.0)
    request = routing.next_request(1.0)
    before = routing.described_at
    routing.answered(request, described(absent("orders", error=FORBIDDEN)), 2.0)

    assert before < 1.0
    assert 1.0 == routing.described_at
