"""Subscriptions of client metrics are described, altered and listed as by Kafka."""

import uuid

import pytest

from tests.broker.configs import APPEND, DELETE, SET, alter, shown

CLIENT_METRICS = 16
DEFAULTS = {
    "interval.ms": ("300000", []),
    "match": ("", []),
    "metrics": ("", []),
}


pytestmark = pytest.mark.newer_kafka


@pytest.fixture
def name():
    return f"subscription-{uuid.uuid4().hex[:8]}"


def change(either, name, *changes, **options):
    error = alter(either, CLIENT_METRICS, name, *changes, **options)
    either.sleep(0.3)
    return error


def listed(either):
    found = either.request("list_config_resources", 1, resource_types=[CLIENT_METRICS])
    return {each.resource_name for each in found.config_resources}


def test_unknown_subscription_has_the_defaults(either, name):
    assert DEFAULTS == shown(either, CLIENT_METRICS, name)
    assert name not in listed(either)


def test_subscription_is_changed_listed_and_deleted(either, name):
    assert not change(
        either,
        name,
        ("interval.ms", SET, "1000"),
        ("metrics", SET, "org.apache.kafka.consumer.,com.example."),
        ("match", SET, "client_id=billing.*"),
    )

    found = shown(either, CLIENT_METRICS, name)
    assert ("1000", [("interval.ms", "1000", 7)]) == found["interval.ms"]
    assert "org.apache.kafka.consumer.,com.example." == found["metrics"][0]
    assert "client_id=billing.*" == found["match"][0]
    assert name in listed(either)

    names = ("interval.ms", "metrics", "match")
    assert not change(either, name, *((each, DELETE, None) for each in names))
    assert DEFAULTS == shown(either, CLIENT_METRICS, name)
    assert name not in listed(either)


def test_validate_only_changes_nothing(either, name):
    assert not change(either, name, ("metrics", SET, "*"), validate_only=True)

    assert name not in listed(either)


BOUNDS = "interval must be between 100 and 3600000 (1 hour)"
NO_NUMBER = "Invalid value soon for configuration interval.ms: Not a number of type INT"
PATTERN = "Illegal client matching pattern:"
NOT_A_LIST = "Can't APPEND to key metrics because its type is not LIST."


@pytest.mark.parametrize(
    ("key", "value", "code", "message"),
    [
        ("interval.ms", "99", "request", f"Invalid value 99 for interval.ms, {BOUNDS}"),
        ("interval.ms", "soon", "config", NO_NUMBER),
        ("match", "client_id", "config", f"{PATTERN} client_id"),
        ("match", "shoe_size=44", "config", f"{PATTERN} shoe_size=44"),
        ("color", "blue", "request", "Unknown client metrics configuration: color"),
    ],
)
def test_invalid_settings_are_rejected(either, name, key, value, code, message):
    assert (f"invalid_{code}", message) == change(either, name, (key, SET, value))

    assert name not in listed(either)


def test_lists_are_set_as_a_whole(either, name):
    error = change(either, name, ("metrics", APPEND, "com.example."))

    assert ("invalid_config", NOT_A_LIST) == error


def test_subscription_without_a_name_is_rejected(either):
    error = change(either, "", ("metrics", SET, "*"))

    assert ("invalid_request", "Subscription name can't be empty") == error
