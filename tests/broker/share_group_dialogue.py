"""The responses of Kafka 4.3.0 to the members of a share group, recorded.

Topic t has 4 partitions, u has 2. A step has the seconds before it, the member, the
epoch (None: the last one received), the topics, and the expected response: an error; or
the member epoch, the number of assigned partitions by topic (None: unchanged), the
group epoch and the assignment epoch.
"""

from typing import Any, NamedTuple

__all__ = ["PARTITIONS", "STEPS", "Step", "play"]

PARTITIONS = {"t": 4, "u": 2}


class Step(NamedTuple):
    pause: float
    member: str
    epoch: int | None
    topics: list[str] | None
    expected: Any


STEPS = [
    Step(0, "A", 1, None, "group_id_not_found"),
    Step(0, "A", -1, None, "group_id_not_found"),
    Step(0, "A", 0, None, "invalid_request"),
    Step(0, "A", 0, [], "invalid_request"),
    Step(0, "A", -2, None, "invalid_request"),
    Step(0, "", 0, ["t"], "invalid_request"),
    Step(0, "x" * 37, 0, ["t"], "invalid_request"),
    # A new group: nothing is initialised, so nothing is assigned, for a second.
    Step(0, "A", 0, ["t"], (2, {}, 2, 2)),
    Step(0.4, "A", None, None, (2, None, 3, 2)),
    Step(0.2, "A", None, None, (2, None, 3, 2)),
    Step(0.6, "A", None, None, (3, {"t": 4}, 3, 3)),
    # A second member waits for the rest of the interval.
    Step(0, "B", 0, ["t"], (3, {}, 4, 3)),
    Step(0.3, "A", None, None, (3, None, 4, 3)),
    Step(0.9, "A", None, None, (4, {"t": 2}, 4, 4)),
    Step(0, "B", None, None, (4, {"t": 2}, 4, 4)),
    # Epochs: a member can repeat the previous epoch, and 0 always joins.
    Step(0, "A", 3, None, (4, None, 4, 4)),
    Step(0, "A", 2, None, "fenced_member_epoch"),
    Step(0, "A", 5, None, "fenced_member_epoch"),
    Step(0, "C", 4, None, "unknown_member_id"),
    Step(0, "C", -1, None, "unknown_member_id"),
    Step(0, "A", 0, ["t"], (4, {"t": 2}, 4, 4)),
    Step(0, "A", None, ["t"], (4, {"t": 2}, 4, 4)),
    # Another topic: assigned immediately after the interval, but not initialised.
    Step(1.2, "A", None, ["t", "u"], (5, {"t": 2}, 5, 5)),
    Step(0, "A", None, ["u", "t"], (5, {"t": 2}, None, 5)),
    Step(0.4, "A", None, None, (5, None, 6, 5)),
    # Unsubscribed topics are removed before the next assignment.
    Step(0, "A", None, ["u"], (5, {}, 7, 5)),
    Step(0.9, "A", None, None, (7, {"u": 2}, 7, 7)),
    Step(0, "B", None, None, (7, {"t": 4}, 7, 7)),
    # Leave, and rejoin with unassigned partitions.
    Step(0, "B", -1, None, (-1, None, 8, 7)),
    Step(0, "B", -1, None, "unknown_member_id"),
    Step(1.2, "A", None, None, (8, None, 8, 8)),
    Step(0, "A", -1, None, (-1, None, 9, 8)),
    Step(0, "A", 8, None, "unknown_member_id"),
    Step(0, "B", 0, ["t"], (8, {}, 10, 8)),
    Step(1.2, "B", None, None, (10, {"t": 4}, 10, 10)),
]


def play(broker, group):
    """Send all heartbeats to a broker; return its responses in the form of STEPS."""
    names = {short: broker.create_topic(count) for short, count in PARTITIONS.items()}
    broker.find(group)
    epochs, responses = {}, []
    for step in STEPS:
        broker.sleep(step.pause)
        response = send_heartbeat(broker, group, step, epochs.get(step.member), names)
        if response.error_code:
            responses.append(response.error_code.name)
            continue
        epochs[step.member] = response.member_epoch
        (described,) = broker.request(
            "share_group_describe", 1, group_ids=[group]
        ).groups
        counts = counted(response.assignment, described, names)
        # On a real broker it is random whether a topic is initialised at this moment.
        expects_epoch = (
            isinstance(step.expected, tuple) and step.expected[2] is not None
        )
        epoch = described.group_epoch if expects_epoch else None
        responses.append(
            (response.member_epoch, counts, epoch, described.assignment_epoch)
        )
    return responses


def send_heartbeat(broker, group, step, last_epoch, names):
    return broker.request(
        "share_group_heartbeat",
        1,
        group_id=group,
        member_id=step.member,
        member_epoch=last_epoch if step.epoch is None else step.epoch,
        subscribed_topic_names=step.topics and [names[each] for each in step.topics],
    )


def counted(assignment, described, names):
    if assignment is None:
        return None
    known = {
        each.topic_id: each.topic_name
        for member in described.members
        for each in member.assignment.topic_partitions
    }
    called = {name: short for short, name in names.items()}
    return {
        called[known[each.topic_id]]: len(each.partitions)
        for each in assignment.topic_partitions
        if each.partitions
    }
