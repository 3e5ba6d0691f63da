"""Errors between the admin client and brokers, on the embedded broker.

Calls retry them or report them. In virtual time.
"""

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    ClosedError,
    ConfigurationError,
    ConnectionFailedError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.broker.acls import (
    Acl,
    Operation,
    Pattern,
    Permission,
    Resource,
)
from sharecons.testing.broker.apis import APIS

pytestmark = pytest.mark.anyio

HERE = TopicPartition("orders", 0)


@pytest.fixture(params=virtual_time.BACKENDS)
def anyio_backend(request):
    return virtual_time.backend(request.param)


@pytest.fixture
async def broker():
    async with EmbeddedBroker(brokers=3, listen=False, topics={"orders": 3}) as broker:
        broker.produce("orders", ["a"] * 10, partition=0)
        yield broker


@pytest.fixture
async def admin(broker):
    async with admin_of(broker) as admin:
        (await admin.alter_share_group_offsets("g", {HERE: 2})).check()
        broker.forget_requests()
        yield admin


def admin_of(broker, **options):
    return ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers, network=broker.network, **options
    )


def requests_of(broker, api):
    return [each for each in broker.requests if each.api == api]


READS = [
    ("ListGroups", lambda admin: admin.list_groups()),
    ("ShareGroupDescribe", lambda admin: admin.describe_share_groups("g")),
    ("DescribeShareGroupOffsets", lambda admin: admin.list_share_group_offsets("g")),
    ("ReadShareGroupState", lambda admin: admin.read_state("g")),
    ("ReadShareGroupStateSummary", lambda admin: admin.read_state_summary("g")),
    ("ListOffsets", lambda admin: admin.list_offsets([HERE])),
    ("OffsetFetch", lambda admin: admin.list_consumer_group_offsets("g")),
    ("Metadata", lambda admin: admin.describe_topics("orders")),
    ("FindCoordinator", lambda admin: admin.describe_share_groups("g")),
    ("DescribeConfigs", lambda admin: admin.describe_group_configs("g")),
    ("DescribeCluster", lambda admin: admin.describe_cluster()),
]
CHANGES = [
    (
        "AlterShareGroupOffsets",
        lambda admin: admin.alter_share_group_offsets("g", {HERE: 5}),
    ),
    (
        "DeleteShareGroupOffsets",
        lambda admin: admin.delete_share_group_offsets("g", ["orders"]),
    ),
    ("DeleteGroups", lambda admin: admin.delete_share_groups("g")),
    ("OffsetCommit", lambda admin: admin.alter_consumer_group_offsets("c", {HERE: 5})),
    ("DeleteRecords", lambda admin: admin.delete_records({HERE: 5})),
    (
        "IncrementalAlterConfigs",
        lambda admin: admin.alter_group_configs("g", {"share.delivery.count.limit": 7}),
    ),
]
every_call = pytest.mark.parametrize(
    ("api", "call"), [pytest.param(*each, id=each[0]) for each in READS + CHANGES]
)


def has_no_error(result):
    """Return whether neither the result nor its parts have an error."""
    if hasattr(result, "errors"):
        inner = getattr(result, "found", {}).values()
        return not result.errors and all(has_no_error(each) for each in inner)
    return getattr(result, "error", None) is None


@every_call
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_broken_connection_is_reopened(broker, admin, api, call, after):
    fault = broker.faults.on(api, times=2).cut(after=after)

    assert has_no_error(await call(admin))
    assert 2 == fault.hits


@every_call
async def test_lost_response_is_requested_again(broker, admin, api, call):
    fault = broker.faults.on(api, times=1).lose()

    assert has_no_error(await call(admin))
    assert 1 == fault.hits


@every_call
async def test_cancelled_call_leaves_the_admin_usable(broker, admin, api, call):
    with broker.faults.on(api).stall():
        with anyio.move_on_after(1) as scope:
            await call(admin)

    assert scope.cancelled_caught
    assert has_no_error(await call(admin))


@pytest.mark.parametrize(
    "code",
    [
        "NOT_COORDINATOR",
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
    ],
)
@pytest.mark.parametrize(
    ("api", "call"),
    [pytest.param(*each, id=each[0]) for each in (*READS[1:5], *CHANGES[:4])],
)
async def test_request_to_an_unready_coordinator_is_retried(
    broker, admin, api, call, code
):
    fault = broker.faults.on(api, times=3).refuse(code)

    assert has_no_error(await call(admin))
    assert 3 == fault.hits


async def test_a_coordinator_that_moved_is_found(broker, admin):
    old = (await admin.describe_group("g")).coordinator.node_id
    broker.move_coordinator("g", to=old % 3 + 1)
    described = await admin.describe_group("g")

    assert old % 3 + 1 == described.coordinator.node_id


async def test_describe_group_returns_the_description_of_one_group(broker, admin):
    described = await admin.describe_group("g", authorized_operations=True)

    assert ("g", "Empty", ()) == (
        described.group_id,
        described.state,
        described.members,
    )
    assert broker.coordinator("g") == described.coordinator.node_id
    assert {"READ", "DELETE", "DESCRIBE"} <= described.authorized_operations


async def test_describe_group_raises_the_error_of_an_unknown_group(broker, admin):
    with pytest.raises(BrokerError, match="Group unknown not found") as caught:
        await admin.describe_group("unknown")

    assert "GROUP_ID_NOT_FOUND" == caught.value.name


async def test_describe_group_raises_the_error_of_a_group_of_another_type(
    broker, admin
):
    (await admin.alter_consumer_group_offsets("c", {HERE: 5})).check()

    with pytest.raises(BrokerError, match="not a share group"):
        await admin.describe_group("c")


async def test_describe_group_without_a_coordinator_raises_at_the_timeout(broker):
    broker.faults.on("ShareGroupDescribe", times=None).refuse("NOT_COORDINATOR")
    async with admin_of(broker, timeout=7) as admin:
        with pytest.raises(RequestTimedOutError, match="within 7 s.*NOT_COORDINATOR"):
            await admin.describe_group("g")


async def test_a_coordinator_that_died_is_replaced(broker, admin):
    old = broker.coordinator("g")
    await admin.describe_share_groups("g")
    broker.stop_broker(old)

    described = await admin.describe_group("g")
    assert described.coordinator.node_id != old


async def test_a_leader_that_moved_is_found(broker, admin):
    await admin.list_offsets([HERE])
    broker.move_leader("orders", 0, to=broker.leader("orders") % 3 + 1)

    assert 10 == (await admin.list_offsets([HERE]))[HERE].value.offset


async def test_partition_without_a_response_does_not_affect_others(broker, admin):
    partitions = [TopicPartition("orders", number) for number in range(3)]
    silent = broker.leader("orders", 0)
    others = [p for p in partitions if broker.leader("orders", p.partition) != silent]
    with broker.faults.on("ListOffsets", times=None, node=silent).stall():
        found = await admin.list_offsets(partitions)

    assert isinstance(found[HERE].error, RequestTimedOutError)
    assert others
    assert all(found[each].ok for each in others)


async def test_permanent_retriable_error_ends_at_the_timeout_with_the_last_error(
    broker,
):
    async with admin_of(broker, timeout=7) as admin:
        broker.faults.on("ShareGroupDescribe", times=None).refuse("NOT_COORDINATOR")
        began = anyio.current_time()
        described = await admin.describe_share_groups("g")
        took = anyio.current_time() - began

    assert 7 == pytest.approx(took, abs=0.1)
    assert isinstance(described["g"].error, RequestTimedOutError)
    assert (
        "cannot describe share group 'g' within 7 s; last error: NOT_COORDINATOR"
    ) == str(described["g"].error)


@every_call
async def test_no_call_exceeds_its_timeout(broker, admin, api, call):
    broker.faults.on(api, times=None).lose()
    began = anyio.current_time()
    try:
        result = await call(admin)
    except ConnectionFailedError:
        pass
    else:
        assert not has_no_error(result)
    assert anyio.current_time() - began <= 30.1


async def test_list_groups_names_brokers_that_failed(broker, admin):
    with broker.faults.on("ListGroups", times=None, node=2).stall():
        listed = await admin.list_groups(types=())

    assert {2} == listed.errors.keys()
    assert "broker 2" in str(listed.errors[2])


async def test_delete_after_a_lost_response_succeeds(broker, admin):
    broker.faults.on("DeleteGroups").cut(after=True)

    assert (await admin.delete_share_groups("g"))["g"].ok
    assert 2 == len(requests_of(broker, "DeleteGroups"))


async def test_stopped_cluster_is_retried_until_the_timeout(broker):
    async with admin_of(broker, timeout=5) as admin:
        await admin.describe_cluster()
        for node_id in (1, 2, 3):
            broker.stop_broker(node_id)
        began = anyio.current_time()
        with pytest.raises(ConnectionFailedError):
            await admin.describe_cluster()
        described = await admin.describe_share_groups("g")

    assert 4 <= anyio.current_time() - began <= 10.1
    assert isinstance(described["g"].error, RequestTimedOutError)


def deny(broker, kind, name):
    broker.cluster.authorizer.add(
        Acl(
            resource=Resource[kind],
            name=name,
            pattern=Pattern.LITERAL,
            principal="User:*",
            host="*",
            operation=Operation.ALL,
            permission=Permission.DENY,
        )
    )


GROUP, TOPIC, CLUSTER = "GROUP", "TOPIC", "CLUSTER"
NAMES = {GROUP: "g", TOPIC: "orders", CLUSTER: "kafka-cluster"}
CALLS = dict(READS + CHANGES)


@pytest.mark.parametrize(
    ("kind", "api"),
    [
        (GROUP, "ShareGroupDescribe"),
        (GROUP, "DescribeShareGroupOffsets"),
        (GROUP, "AlterShareGroupOffsets"),
        (GROUP, "DeleteShareGroupOffsets"),
        (GROUP, "DeleteGroups"),
        (GROUP, "DescribeConfigs"),
        (GROUP, "IncrementalAlterConfigs"),
        (GROUP, "OffsetFetch"),
        (TOPIC, "ListOffsets"),
        (TOPIC, "Metadata"),
        (TOPIC, "AlterShareGroupOffsets"),
        (TOPIC, "OffsetCommit"),
        (CLUSTER, "ReadShareGroupState"),
        (CLUSTER, "ReadShareGroupStateSummary"),
    ],
)
async def test_missing_permission_raises_without_retries(broker, admin, kind, api):
    deny(broker, kind, NAMES[kind])
    began = anyio.current_time()
    result = await CALLS[api](admin)

    error = getattr(result, "error", None) or next(iter(result.errors.values()))
    assert isinstance(error, AuthorizationError)
    assert f"{kind}_AUTHORIZATION_FAILED" == error.name
    assert f"no right to the {kind.lower()}" in str(error)
    assert 1 > anyio.current_time() - began


async def test_configs_can_be_set_without_reading_broker_bounds(broker, admin):
    deny(broker, CLUSTER, NAMES[CLUSTER])

    assert (await admin.alter_group_configs("g", {"share.delivery.count.limit": 7})).ok


async def test_altered_offsets_that_kafka_4_1_ignores_raise(broker, admin):
    def ignore(response, context):
        return {**response, "responses": []}

    broker.faults.on("AlterShareGroupOffsets", times=None).change(ignore)
    altered = await admin.alter_share_group_offsets("g", {HERE: 5})

    assert isinstance(altered[HERE].error, UnsupportedVersionError)
    assert "use Kafka 4.2 or newer" in str(altered[HERE].error)


async def test_older_kafka_error_names_the_needed_version(broker, admin):
    def without_share_groups(request, context):
        apis = [{"api_key": 10, "min_version": 0, "max_version": 6}]
        apis += [{"api_key": 3, "min_version": 0, "max_version": 13}]
        return {"api_keys": apis}

    broker.faults.on("ApiVersions", times=None).respond(without_share_groups)
    async with admin_of(broker) as old:
        described = await old.describe_share_groups("g")

    assert isinstance(described["g"].error, UnsupportedVersionError)
    assert "Kafka 4.1 or newer" in str(described["g"].error)


async def test_missing_lag_is_computed(broker, admin):
    def as_kafka_4_1(request, context):
        highest = {90: 0, 87: 0}
        return {
            "api_keys": [
                {
                    "api_key": key,
                    "min_version": api.versions[0],
                    "max_version": highest.get(key, api.versions[-1]),
                }
                for key, api in APIS.items()
            ]
        }

    broker.faults.on("ApiVersions", times=None).respond(as_kafka_4_1)
    async with admin_of(broker) as old:
        listed = (await old.list_share_group_offsets("g"))["g"].value
        summary = await old.read_state_summary("g")

    assert (2, 8) == (listed[HERE].value.start_offset, listed[HERE].value.lag)
    assert summary[HERE].value.delivery_complete_count is None


async def test_closed_admin_raises_closed_error(broker):
    async with admin_of(broker) as admin:
        await admin.describe_cluster()
    await admin.aclose()

    with pytest.raises(ClosedError):
        await admin.describe_cluster()


async def test_concurrent_calls_all_succeed(broker, admin):
    results = []

    async def run(call):
        results.append(await call(admin))

    async with anyio.create_task_group() as tasks:
        for _, call in READS * 3:
            tasks.start_soon(run, call)

    assert 3 * len(READS) == len(results)
    assert all(map(has_no_error, results))


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.describe_share_groups(""),
        lambda admin: admin.list_groups(types="share"),
        lambda admin: admin.list_share_group_offsets("g", partitions=["orders"]),
        lambda admin: admin.delete_share_group_offsets("g", "orders"),
        lambda admin: admin.alter_group_configs("g", {}),
        lambda admin: admin.list_offsets([("orders", -1)]),
    ],
)
async def test_invalid_arguments_are_rejected(admin, call):
    with pytest.raises(ConfigurationError):
        await call(admin)


async def test_calls_without_keys_send_no_requests(broker, admin):
    assert 0 == len(await admin.describe_share_groups())
    assert 0 == len(await admin.list_share_group_offsets())
    assert 0 == len(await admin.list_offsets([]))
    assert 0 == len(await admin.alter_share_group_offsets("g", {}))
    assert 0 == len(await admin.describe_group_configs())
    assert [] == [each for each in broker.requests if each.api != "ApiVersions"]
