"""Classic groups, and the requests of their members as plain calls."""

import struct

import pytest

from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.groups.classic import (
    ClassicGroup,
    JoinRequest,
    State,
    SyncRequest,
)

__all__ = ["error_of", "join", "rejoin", "stable_group", "subscription", "sync"]

RANGE = (("range", b"r"),)


def request(member_id="", **fields):
    return JoinRequest(
        **{
            "member_id": member_id,
            "new_id": "unknown",
            "session_timeout": 10.0,
            "rebalance_timeout": 60.0,
            "protocol_type": "consumer",
            "protocols": RANGE,
            "id_required": False,
            **fields,
        }
    )


def join(group, name, now=0.0, **fields):
    """Join as a new member, with its assigned id."""
    return group.join(request(new_id=name, **fields), now)


def rejoin(group, name, now=0.0, **fields):
    return group.join(request(name, **fields), now)


def sync(group, name, now=0.0, assignments=None, **fields):
    fields = {"generation_id": group.generation_id, **fields}
    return group.sync(
        SyncRequest(member_id=name, assignments=assignments or {}, **fields), now
    )


def stable_group(*names, now=0.0, **fields):
    """Return a group of these members; the first one is the leader."""
    group = ClassicGroup("g")
    for name in names:
        join(group, name, now, **fields)
        for other in names[: names.index(name)]:
            rejoin(group, other, now, **fields)
    assignments = {name: name.encode() for name in names}
    for name in reversed(names):
        sync(group, name, now, assignments)
    assert State.STABLE is group.state
    return group


def error_of(call, *args, **kwargs):
    with pytest.raises(GroupError) as caught:
        call(*args, **kwargs)
    return caught.value.code


def subscription(*topics):
    """Return the metadata of a consumer that subscribes to topics."""
    names = b"".join(struct.pack(">h", len(t)) + t.encode() for t in topics)
    return struct.pack(">hi", 1, len(topics)) + names + b"\xff\xff\xff\xff"
