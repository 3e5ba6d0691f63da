"""A group, its members and their requests, on a real Kafka or the embedded broker."""

import uuid

from kio.schema.errors import ErrorCode

from tests.broker.blocking_client import BlockingClient
from tests.broker.classic_groups import subscription
from tests.waiting import until_true

__all__ = [
    "GroupTalk",
    "Member",
    "Producer",
    "add_member",
    "settled",
    "stable",
    "until_described",
    "until_rebalancing",
]

SESSION = 10_000
TIMEOUT = 30.0
LOADING = {
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
    ErrorCode.concurrent_transactions,
}


def settled(send, code_of, not_yet=LOADING):
    """Retry while a real Kafka loads coordinators or writes markers."""
    response = None

    def is_settled():
        nonlocal response
        response = send()
        return code_of(response) not in not_yet

    until_true(is_settled, TIMEOUT, what="the response")
    return response


class GroupTalk:
    """A group and a topic, with connections for their requests."""

    def __init__(self, kafka):
        self._kafka = kafka
        self._open = []
        self.topic = kafka.admin.create_topic(partitions=2)
        self.group = f"group-{uuid.uuid4().hex[:12]}"
        kafka.admin.group_coordinator(self.group)
        self.admin = self.client()
        (described,) = self.admin.request(
            "metadata",
            12,
            topics=[{"topic_id": None, "name": self.topic}],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        ).topics
        self.topic_id = described.topic_id
        settled(lambda: self.describe(version=5), lambda groups: groups[0].error_code)

    def client(self, name="test"):
        client = BlockingClient(self._kafka.bootstrap_servers, name)
        self._open.append(client)
        return client

    def close(self):
        for client in self._open:
            client.__exit__()

    def describe(self, *groups, version=6, rights=False):
        return self.admin.request(
            "describe_groups",
            version,
            groups=groups or [self.group],
            include_authorized_operations=rights,
        ).groups

    def commit(
        self,
        offset,
        generation=-1,
        member="",
        version=9,
        group=None,
        instance=None,
        **partition,
    ):
        response = self.admin.request(
            "offset_commit",
            version,
            group_id=self.group if group is None else group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            group_instance_id=instance,
            retention_time=-1,
            topics=[
                {
                    "name": partition.pop("topic", self.topic),
                    "topic_id": partition.pop("topic_id", self.topic_id),
                    "partitions": [
                        {
                            "partition_index": 0,
                            "committed_offset": offset,
                            "committed_leader_epoch": 0,
                            "committed_metadata": "",
                            **partition,
                        }
                    ],
                }
            ],
        )
        return response.topics[0].partitions[0].error_code

    def commit_many(self, count, metadata):
        """Commit partition 0 several times in one request; return the last error."""
        offset = {
            "partition_index": 0,
            "committed_offset": 1,
            "committed_leader_epoch": -1,
            "committed_metadata": metadata,
        }
        response = self.admin.request(
            "offset_commit",
            9,
            group_id=self.group,
            generation_id_or_member_epoch=-1,
            topics=[{"name": self.topic, "partitions": [offset] * count}],
        )
        return response.topics[0].partitions[-1].error_code

    def fetch(self, *partitions, version=9, group=None, stable=False, topics=...):
        """Return offsets, metadata and errors by partition."""
        if topics is ...:
            wanted = {"name": self.topic, "topic_id": self.topic_id}
            topics = [{**wanted, "partition_indexes": partitions}]
        group = self.group if group is None else group
        response = self.admin.request(
            "offset_fetch",
            version,
            group_id=group,
            topics=topics,
            groups=[{"group_id": group, "topics": topics}],
            require_stable=stable,
        )
        found = response.groups[0].topics if version >= 8 else response.topics
        return {
            p.partition_index: (p.committed_offset, p.metadata, p.error_code)
            for topic in found
            for p in topic.partitions
        }

    def delete(self, *groups):
        results = self.admin.request("delete_groups", 2, groups_names=groups).results
        return {result.group_id: result.error_code for result in results}


class Member:
    """A member with its own connection."""

    def __init__(self, talk, instance=None, version=9):
        self.client = talk.client()
        self._talk = talk
        self._instance = instance
        self._version = version
        self.is_static = instance is not None
        self.id = ""
        self.generation = -1

    def send_join(self, member_id=None, **fields):
        self.client.send(
            "join_group",
            self._version,
            **{
                "group_id": self._talk.group,
                "session_timeout": SESSION,
                "rebalance_timeout": SESSION,
                "member_id": self.id if member_id is None else member_id,
                "group_instance_id": self._instance,
                "protocol_type": "consumer",
                "protocols": [
                    {"name": "range", "metadata": subscription(self._talk.topic)}
                ],
                **fields,
            },
        )

    def joined(self):
        response = self.client.receive()
        self.id, self.generation = response.member_id, response.generation_id
        return response

    def join(self, **fields):
        """Join; rejoin with the assigned id if required."""
        self.send_join(**fields)
        response = self.joined()
        if response.error_code is not ErrorCode.member_id_required:
            return response
        self.send_join(**fields)
        return self.joined()

    def start_join(self):
        """Get a member id, and send the join without waiting for its response."""
        self.send_join()
        assert ErrorCode.member_id_required is self.joined().error_code
        self.send_join()

    def send_sync(self, assignments=None, **fields):
        self.client.send(
            "sync_group",
            5,
            **{
                "group_id": self._talk.group,
                "generation_id": self.generation,
                "member_id": self.id,
                "group_instance_id": self._instance,
                "protocol_type": "consumer",
                "protocol_name": "range",
                "assignments": [
                    {"member_id": member_id, "assignment": assignment}
                    for member_id, assignment in (assignments or {}).items()
                ],
                **fields,
            },
        )

    def sync(self, assignments=None, **fields):
        self.send_sync(assignments, **fields)
        return self.client.receive()

    def beat(self, **fields):
        return self.client.request(
            "heartbeat",
            4,
            **{
                "group_id": self._talk.group,
                "generation_id": self.generation,
                "member_id": self.id,
                "group_instance_id": self._instance,
                **fields,
            },
        ).error_code

    def leave(self, *members):
        leaving = members or [(self.id, self._instance)]
        response = self.client.request(
            "leave_group",
            5,
            group_id=self._talk.group,
            members=[
                {"member_id": one, "group_instance_id": instance, "reason": None}
                for one, instance in leaving
            ],
        )
        return [member.error_code for member in response.members]


class Producer:
    """A transactional producer that commits offsets, with old or new requests."""

    def __init__(self, talk, version):
        self._talk = talk
        self._version = version
        self._id = f"transactional-{uuid.uuid4().hex[:12]}"
        self._request("find_coordinator", 3, key=self._id, key_type=1)
        response = self._request(
            "init_producer_id",
            4,
            transactional_id=self._id,
            transaction_timeout=30_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        self._who = {
            "producer_id": response.producer_id,
            "producer_epoch": response.producer_epoch,
        }

    def _request(self, api, version, **values):
        response = settled(
            lambda: self._talk.admin.request(api, version, **values),
            lambda response: response.error_code,
        )
        assert ErrorCode.none is response.error_code
        return response

    def add(self):
        self._request(
            "add_offsets_to_txn",
            3,
            transactional_id=self._id,
            group_id=self._talk.group,
            **self._who,
        )

    def commit(
        self, offset, generation=-1, member="", group=None, topic_id=..., instance=None
    ):
        if topic_id is ...:
            topic_id = self._talk.topic_id
        topic = {"name": self._talk.topic, "topic_id": topic_id}
        partition = {
            "partition_index": 0,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": None,
        }
        response = settled(
            lambda: self._talk.admin.request(
                "txn_offset_commit",
                self._version,
                transactional_id=self._id,
                group_id=self._talk.group if group is None else group,
                generation_id=generation,
                member_id=member,
                group_instance_id=instance,
                topics=[{**topic, "partitions": [partition]}],
                **self._who,
            ),
            lambda response: response.topics[0].partitions[0].error_code,
        )
        return response.topics[0].partitions[0].error_code

    def end(self, committed):
        new = self._version >= 5
        response = self._request(
            "end_txn",
            5 if new else 3,
            transactional_id=self._id,
            committed=committed,
            **self._who,
        )
        if new:
            self._who["producer_epoch"] = response.producer_epoch


def stable(talk, count=2, instances=(None, None), version=9):
    """Return the members of a stable group, the leader first."""
    members = []
    for _, instance in zip(range(count), instances, strict=True):
        new = Member(talk, instance, version)
        if members:
            add_member(members[0], new)
        else:
            new.join()
        members.append(new)
        assignments = {member.id: member.id[-4:].encode() for member in members}
        members[0].send_sync(assignments)
        for member in members[1:]:
            member.sync()
        members[0].client.receive()
    return members


def add_member(leader, new):
    """Add a member to a group of one."""
    new.send_join() if new.is_static else new.start_join()
    until_rebalancing(leader)
    leader.send_join()
    new.joined()
    leader.joined()


def until_rebalancing(member):
    """Retry: requests of different connections can arrive in another order."""
    until_true(
        lambda: member.beat() is ErrorCode.rebalance_in_progress,
        TIMEOUT,
        what="the rebalance",
        pause=0,
    )


def until_described(talk, state):
    settled(talk.describe, lambda groups: groups[0].group_state == state, {False})
