"""Groups listed, described and deleted, and coordinators looked up.

The embedded broker and a real Kafka return the same responses.
"""

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.classic_groups import subscription
from tests.broker.group_talk import GroupTalk, Member, settled, stable


@pytest.fixture
def talk(any_kafka):
    talk = GroupTalk(any_kafka)
    yield talk
    talk.close()


def test_groups_are_listed_by_state_and_type_and_described(talk):
    (one,) = stable(talk, 1, (None,))

    def listed(version=5, states=(), types=()):
        response = talk.admin.request(
            "list_groups", version, states_filter=states, types_filter=types
        )
        return [group for group in response.groups if group.group_id == talk.group]

    (group,) = listed()
    assert ("consumer", "Stable", "classic") == (
        group.protocol_type,
        group.group_state,
        group.group_type,
    )
    assert listed(states=["STABLE "], types=["Classic"])
    assert not listed(states=["empty"])
    assert not listed(types=["share"])
    assert not listed(types=["nonsense"])
    assert listed(version=4, states=["stable", "empty"])
    assert "consumer" == listed(version=0)[0].protocol_type
    (described,) = talk.describe(rights=True)
    (member,) = described.members
    assert ("Stable", "consumer", "range", 3400) == (
        described.group_state,
        described.protocol_type,
        described.protocol_data,
        described.authorized_operations,
    )
    assert (one.id, "test", "/127.0.0.1", one.id[-4:].encode()) == (
        member.member_id,
        member.client_id,
        member.client_host,
        member.member_assignment,
    )
    assert subscription(talk.topic) == member.member_metadata


def test_missing_group_is_dead(talk):
    (new,) = talk.describe("unknown")
    (old,) = talk.describe("unknown", version=5)

    assert ("Dead", ErrorCode.group_id_not_found) == (new.group_state, new.error_code)
    assert "Group unknown not found." == new.error_message
    assert ("Dead", ErrorCode.none) == (old.group_state, old.error_code)


def test_only_groups_without_members_are_deleted(talk):
    (one,) = stable(talk, 1, (None,))
    talk.commit(1, one.generation, one.id)

    assert {
        talk.group: ErrorCode.non_empty_group,
        "unknown": ErrorCode.group_id_not_found,
    } == talk.delete(talk.group, "unknown")
    one.leave()
    assert {talk.group: ErrorCode.none} == talk.delete(talk.group)
    assert {} == talk.fetch(topics=None)
    assert ErrorCode.unknown_member_id is one.beat()


def test_classic_requests_to_share_group_fail(talk):
    member_id = "A" * 21 + "g"

    def beat(epoch, group=None, topics=None):
        return talk.admin.request(
            "share_group_heartbeat",
            1,
            group_id=group or talk.group,
            member_id=member_id,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=topics,
        )

    assert ErrorCode.none is beat(0, topics=[talk.topic]).error_code
    classic = Member(talk)
    assert ErrorCode.inconsistent_group_protocol is classic.join().error_code
    classic.id = "x"
    assert ErrorCode.unknown_member_id is classic.beat()
    assert ErrorCode.unknown_member_id is classic.sync().error_code
    assert [ErrorCode.unknown_member_id] == classic.leave(("x", None))
    assert ErrorCode.group_id_not_found is talk.commit(1)
    assert {0: (-1, "", ErrorCode.none)} == talk.fetch(0)
    assert {} == talk.fetch(topics=None)
    (described,) = talk.describe()
    assert f"Group {talk.group} is not a classic group." == described.error_message
    assert {talk.group: ErrorCode.non_empty_group} == talk.delete(talk.group)
    beat(-1)
    classic.id = ""
    assert ErrorCode.inconsistent_group_protocol is classic.join().error_code
    assert {talk.group: ErrorCode.none} == talk.delete(talk.group)
    assert ErrorCode.none is classic.join().error_code
    classic.leave()
    rejected = beat(0, topics=[talk.topic])
    assert ErrorCode.group_id_not_found is rejected.error_code


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.none),
        ("a:b:AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.none),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:-1", ErrorCode.none),
        ("g", ErrorCode.invalid_request),
        ("g:short:0", ErrorCode.invalid_request),
        (":AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.invalid_request),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:x", ErrorCode.invalid_request),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ", ErrorCode.invalid_request),
    ],
)
def test_share_coordinator_is_found_by_valid_keys(talk, key, expected):
    def error(version):
        (found,) = talk.admin.request(
            "find_coordinator", version, key_type=2, coordinator_keys=[key]
        ).coordinators
        assert (key, found.error_code == 0) == (found.key, found.node_id >= 0)
        return found.error_code

    assert ErrorCode.invalid_request is error(5)
    assert expected is settled(lambda: error(6), lambda code: code)


@pytest.mark.parametrize("version", range(7))
def test_coordinator_is_found_in_every_version(talk, version):
    keys = {"key_type": 0, "key": talk.group, "coordinator_keys": [talk.group, "g"]}
    response = talk.admin.request("find_coordinator", version, **keys)
    found = response.coordinators[0] if version >= 4 else response

    assert (ErrorCode.none, "127.0.0.1") == (found.error_code, found.host)
    if version >= 4:
        assert [talk.group, "g"] == [each.key for each in response.coordinators]
        assert "" == found.error_message
    elif version:
        assert "NONE" == found.error_message


@pytest.mark.parametrize("version", [1, 3, 4, 6])
def test_unknown_key_type_is_rejected(talk, version):
    keys = {"key_type": 9, "key": "x", "coordinator_keys": ["x"]}
    response = talk.admin.request("find_coordinator", version, **keys)
    found = response.coordinators[0] if version >= 4 else response

    assert (ErrorCode.invalid_request, -1) == (found.error_code, found.node_id)
