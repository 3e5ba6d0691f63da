"""Client telemetry (KIP-714): which requests the brokers accept, and what they keep."""

import uuid

import cramjam
import pytest

from sharecons.testing.broker.codec import Header
from sharecons.testing.broker.settings.changes import Change, Operation
from tests.broker.call_handler import call_api, handle, make_cluster
from tests.broker.either import ClockedContext
from tests.broker.messages import API_KEYS, make_request

ZSTD, LZ4, GZIP, SNAPPY = 4, 3, 1, 2
LARGE = bytes(cramjam.zstd.compress(b"x" * 1000))
"""Less than 40 bytes; 1,000 when it is decompressed."""


class Client:
    """A client of a cluster, on a clock that the test moves."""

    peer = "/10.0.0.7"
    software = ("sharecons", "1.0")

    def __init__(self, **settings):
        self.cluster = make_cluster(1, **settings)
        self.now = 100.0
        self.id = None
        self.subscription_id = 0

    def call(self, api, **values):
        header = Header(API_KEYS[api], 0, 1, "billing-1")
        return handle(
            make_request(api, 0, **values),
            ClockedContext(header, self.cluster, 1, self),
        )

    def subscribe(self, name="all", **values):
        values = {key.replace("_", "."): value for key, value in values.items()}
        changes = [Change(key, Operation.SET, value) for key, value in values.items()]
        self.cluster.configs.alter_client_metrics(name, changes)

    def get(self):
        response = self.call("get_telemetry_subscriptions", client_instance_id=self.id)
        if not response.error_code:
            self.id = response.client_instance_id
            self.subscription_id = response.subscription_id
        return response

    def push(self, metrics=b"abc", **changes):
        values = {
            "client_instance_id": self.id,
            "subscription_id": self.subscription_id,
            "terminating": False,
            "compression_type": 0,
            "metrics": metrics,
            **changes,
        }
        return self.call("push_telemetry", **values).error_code.name


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def subscribed(client):
    client.subscribe(metrics="*", interval_ms="1000")
    client.get()
    return client


def test_without_a_subscription_nothing_is_wanted(client):
    response = client.get()

    assert isinstance(response.client_instance_id, uuid.UUID)
    assert 300.0 == response.push_interval.total_seconds()
    assert () == response.requested_metrics
    assert (ZSTD, LZ4, GZIP, SNAPPY) == response.accepted_compression_types
    assert 1 << 20 == response.telemetry_max_bytes
    assert response.delta_temporality


def test_subscriptions_are_joined_with_the_shortest_interval(client):
    client.subscribe("first", metrics="a.,b.", interval_ms="2000")
    client.subscribe("second", metrics="b.,c.", interval_ms="1000")
    client.subscribe("other", metrics="d.", match="client_id=shop.*")

    response = client.get()
    assert {"a.", "b.", "c."} == set(response.requested_metrics)
    assert 1.0 == response.push_interval.total_seconds()

    client.subscribe("all", metrics="*", interval_ms="3000")
    assert ("*",) == client.get().requested_metrics


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_id=billing-.*", True),
        ("client_id=billing", False),
        ("client_source_address=10\\.0\\.0\\.7", True),
        ("client_software_name=sharecons,client_software_version=1.*", True),
        ("client_software_name=sharecons,client_id=shop", False),
        ("client_instance_id=.*-.*", True),
    ],
)
def test_subscription_matches_clients_by_their_labels(client, match, matches):
    client.subscribe(metrics="a.", match=match)

    assert (("a.",) if matches else ()) == client.get().requested_metrics


def test_subscription_is_requested_once_per_interval(subscribed):
    subscribed.now += 0.9
    assert "throttling_quota_exceeded" == subscribed.get().error_code.name

    subscribed.now += 0.1
    assert not subscribed.get().error_code


def test_changed_subscription_rejects_a_push_and_is_requested_immediately(subscribed):
    before = subscribed.id, subscribed.subscription_id
    subscribed.subscribe(metrics="a.")

    assert "unknown_subscription_id" == subscribed.push()
    assert ("a.",) == subscribed.get().requested_metrics
    assert before[0] == subscribed.id
    assert before[1] != subscribed.subscription_id
    assert "throttling_quota_exceeded" == subscribed.push()
    subscribed.now += 1.0
    assert "none" == subscribed.push()


def test_pushes_are_accepted_once_per_interval(subscribed):
    subscribed.now += 0.5
    assert "none" == subscribed.push(b"1")
    subscribed.now += 0.9
    assert "throttling_quota_exceeded" == subscribed.push(b"2")
    subscribed.now += 0.1
    assert "none" == subscribed.push(b"3")

    pushes = subscribed.cluster.telemetry.pushes
    assert [b"1", b"3"] == [each.data for each in pushes]
    assert {subscribed.id} == {each.client_instance_id for each in pushes}
    assert ["billing-1"] * 2 == [each.client_id for each in pushes]


def test_last_push_is_accepted_at_any_time_and_only_once(subscribed):
    assert "none" == subscribed.push()
    assert "none" == subscribed.push(b"last", terminating=True)
    assert "invalid_request" == subscribed.push(terminating=True)

    pushes = subscribed.cluster.telemetry.pushes
    assert [False, True] == [each.terminating for each in pushes]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"client_instance_id": None}, "invalid_request"),
        ({"subscription_id": 7}, "unknown_subscription_id"),
        ({"compression_type": 5}, "unsupported_compression_type"),
        ({"metrics": b"x" * 41}, "telemetry_too_large"),
        ({"compression_type": ZSTD}, "invalid_record"),
        ({"compression_type": GZIP}, "invalid_record"),
        ({"compression_type": ZSTD, "metrics": LARGE}, "invalid_record"),
    ],
)
def test_invalid_push_is_rejected_and_not_kept(changes, error):
    client = Client(telemetry_max_bytes="40")
    client.subscribe(metrics="*")
    client.get()

    assert error == client.push(**changes)
    assert [] == client.cluster.telemetry.pushes


def test_compressed_push_is_kept_decompressed(subscribed):
    data = bytes(cramjam.zstd.compress(b"metrics"))

    assert "none" == subscribed.push(data, compression_type=ZSTD)
    (push,) = subscribed.cluster.telemetry.pushes
    assert (b"metrics", ZSTD) == (push.data, push.compression_type)


@pytest.mark.parametrize("is_enabled", [False, True])
def test_apis_are_announced_only_if_metrics_are_collected(is_enabled):
    cluster = make_cluster(1)
    cluster.telemetry.is_enabled = is_enabled

    response = call_api(cluster, "api_versions", 0)

    announced = {each.api_key for each in response.api_keys}
    assert ({71, 72} if is_enabled else set()) == announced & {71, 72}
