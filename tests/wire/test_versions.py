"""The choice of an API's version for a broker, and the error if there is none."""

import pytest

from sharecons.errors import UnsupportedVersionError
from sharecons.wire.codec.api import VersionRange
from sharecons.wire.consumer_apis import (
    APIS,
    check_record_limit,
    check_share_groups,
    choose_version,
)
from sharecons.wire.metadata import METADATA
from sharecons.wire.share_fetch import SHARE_FETCH

HEARTBEAT, FETCH, ACKNOWLEDGE = 76, 78, 79

KAFKA_4_3 = {
    HEARTBEAT: VersionRange(1, 1),
    FETCH: VersionRange(1, 2),
    ACKNOWLEDGE: VersionRange(1, 2),
}
KAFKA_4_1 = {key: VersionRange(1, 1) for key in KAFKA_4_3}
KAFKA_4_0 = {key: VersionRange(0, 0) for key in KAFKA_4_3}


@pytest.mark.parametrize(
    ("broker", "expected"),
    [((1, 2), 2), ((1, 1), 1), ((2, 7), 2), ((0, 1), 1), ((0, 32767), 2)],
)
def test_highest_common_version_is_chosen(broker, expected):
    assert expected == choose_version(
        SHARE_FETCH, {FETCH: VersionRange(*broker)}, "b:1"
    )


@pytest.mark.parametrize("broker", [(0, 0), (3, 9), (5, 2), (-1, -1)])
def test_no_common_version_is_an_error(broker):
    with pytest.raises(UnsupportedVersionError, match="broker b:1 .*ShareFetch"):
        choose_version(SHARE_FETCH, {FETCH: VersionRange(*broker)}, "b:1")


def test_every_api_has_a_version_with_an_equal_broker():
    for api in APIS.values():
        served = {api.key: VersionRange(api.versions[0], api.versions[-1])}

        assert api.versions[-1] == choose_version(api, served, "b:1")


@pytest.mark.parametrize("served", [KAFKA_4_3, KAFKA_4_1])
def test_broker_with_share_groups_is_accepted(served):
    check_share_groups(served, "b:1")


@pytest.mark.parametrize("missing", [HEARTBEAT, FETCH, ACKNOWLEDGE])
def test_broker_without_one_of_the_apis_is_rejected(missing):
    served = {key: versions for key, versions in KAFKA_4_3.items() if key != missing}

    with pytest.raises(UnsupportedVersionError, match="does not support"):
        check_share_groups(served, "b:1")


@pytest.mark.parametrize("served", [{}, KAFKA_4_0], ids=["none", "early access"])
def test_error_for_a_broker_without_share_groups_names_the_kafka_version(served):
    with pytest.raises(UnsupportedVersionError) as caught:
        check_share_groups(served, "broker-7:9092")

    message = str(caught.value)
    assert "broker-7:9092" in message
    assert "Kafka 4.1 or newer" in message
    assert "kafka-features.sh upgrade --feature share.version=1" in message


def test_error_contains_the_versions_of_both_sides():
    with pytest.raises(
        UnsupportedVersionError, match=r"versions 0 to 0, but this client needs 1 to 2"
    ):
        choose_version(SHARE_FETCH, KAFKA_4_0, "b:1")


def test_error_for_an_api_older_than_share_groups():
    with pytest.raises(UnsupportedVersionError, match="Metadata.*Kafka 4.1 or newer"):
        choose_version(METADATA, {METADATA.key: VersionRange(0, 8)}, "b:1")


def test_record_limit_with_kafka_4_2_and_newer():
    check_record_limit(KAFKA_4_3, "b:1")


def test_record_limit_needs_kafka_4_2():
    with pytest.raises(UnsupportedVersionError, match="record_limit.*Kafka 4.2"):
        check_record_limit(KAFKA_4_1, "b:1")
