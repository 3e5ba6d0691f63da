"""A member pushes its metrics to brokers that want them (KIP-714), on virtual time."""

import subprocess
import sys
from contextlib import asynccontextmanager

import anyio
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from sharecons import RequestTimedOutError
from sharecons.errors import ConsumerStateError
from sharecons.member import telemetry
from sharecons.metrics import METRICS, ApplicationMetric, otlp
from sharecons.protocol.backoff import fraction_of
from tests.net.embedded import (
    GROUP,
    SlowNetwork,
    consuming,
    read_records,
    requests,
    running,
)
from tests.waiting import until
from tests.worker.working import working

pytestmark = pytest.mark.anyio

GET, PUSH = "GetTelemetrySubscriptions", "PushTelemetry"
INTERVAL = 60.0
MEMBER = "telemetry"
FETCHED = METRICS["records-fetched-total"].telemetry_name
ZSTD = 4

assert otlp, "loaded here: in a thread, the clock would jump past its import"


@asynccontextmanager
async def pushing(*, records=10, prefixes=(), interval=INTERVAL, **options):
    """Consume from a broker that wants metrics; yield the broker and the consumer."""
    async with running(records) as broker:
        broker.telemetry.subscribe(*prefixes, interval=interval)
        async with consuming(
            broker, member_id=MEMBER, within=3000, **options
        ) as consumer:
            yield broker, consumer


def totals(values):
    """Return the counters of `metrics()` by their names in pushes."""
    return {
        metric.telemetry_name: values[name]
        for name, metric in METRICS.items()
        if metric.kind == "counter"
    }


def sums(pushes):
    """Return the sums of the counters in pushes."""
    found = dict.fromkeys(totals(dict.fromkeys(METRICS, 0)), 0.0)
    for push in pushes:
        for name in found:
            found[name] += push.values.get(name, 0.0)
    return found


async def pushed(broker, count):
    await until(lambda: len(broker.telemetry.pushes) >= count, 1000, pause=1.0)
    return broker.telemetry.pushes


async def test_pushes_have_the_totals_of_metrics():
    async with pushing() as (broker, consumer):
        for record in await read_records(consumer, 6):
            record.accept()
        await pushed(broker, 1)
        await read_records(consumer, 3)
        await pushed(broker, 3)

    pushes = broker.telemetry.pushes
    assert [False] * (len(pushes) - 1) + [True] == [each.terminating for each in pushes]
    assert {ZSTD} == {each.compression_type for each in pushes}
    assert 1 == len({each.client_instance_id for each in pushes})
    assert totals(consumer.metrics()) == sums(pushes)
    assert 0 < pushes[0].values[FETCHED] < sums(pushes)[FETCHED]


async def test_first_push_is_due_within_the_interval_and_others_after_it():
    async with pushing() as (broker, consumer):
        await pushed(broker, 3)
        (subscribed,) = requests(broker, GET)
        times = [each.at for each in broker.telemetry.pushes]

    first = INTERVAL * (0.5 + fraction_of(consumer.member_id))
    assert first == pytest.approx(times[0] - subscribed.at, abs=0.1)
    assert INTERVAL == pytest.approx(times[1] - times[0], abs=0.1)
    assert INTERVAL == pytest.approx(times[2] - times[1], abs=0.1)


async def test_only_wanted_metrics_are_pushed():
    prefix = "org.apache.kafka.consumer.share.coordinator."
    async with pushing(prefixes=[prefix]) as (broker, _):
        await pushed(broker, 1)

    names = set(broker.telemetry.pushes[0].values)
    assert names
    assert all(name.startswith(prefix) for name in names)


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
async def test_push_has_the_codec_that_the_broker_prefers(codec):
    async with running(10) as broker:
        broker.telemetry.subscribe(interval=INTERVAL)
        broker.faults.on(GET).change(
            lambda response, context: {
                **response,
                "accepted_compression_types": (codec,) if codec else (),
            }
        )
        async with consuming(broker, member_id=MEMBER) as consumer:
            await read_records(consumer, 10)
            await pushed(broker, 1)
    pushes = broker.telemetry.pushes

    assert {codec} == {each.compression_type for each in pushes}
    assert totals(consumer.metrics()) == sums(pushes)


async def test_worker_pushes_its_totals():
    handled = []
    async with running(5) as broker:
        broker.telemetry.subscribe(interval=5.0)
        async with working(broker, handled.append, within=300) as worker:
            worker.register_metric(
                ApplicationMetric(name="com.example.handled", read=lambda: len(handled))
            )
            await until(lambda: len(handled) == 5)
            await pushed(broker, 1)
            client = await worker.client_instance_id()
        pushes = broker.telemetry.pushes

    assert 5 == sums(pushes)[FETCHED]
    assert 5 == pushes[0].values["com.example.handled"]
    assert {client} == {each.client_instance_id for each in pushes}


async def test_application_metrics_are_pushed_while_registered():
    async with pushing() as (broker, consumer):
        metric = ApplicationMetric(name="com.example.depth", read=lambda: 3)
        consumer.register_metric(metric)
        await pushed(broker, 1)
        consumer.unregister_metric("com.example.depth")
        await pushed(broker, 2)

    values = [each.values.get("com.example.depth") for each in broker.telemetry.pushes]
    assert [3.0, None] == values[:2]


# The cost.


async def test_nothing_is_sent_to_brokers_without_client_telemetry():
    async with running(1) as broker, consuming(broker, within=2000) as consumer:
        await anyio.sleep(400)
        assert await consumer.client_instance_id() is None

    assert [] == requests(broker, GET) + requests(broker, PUSH)


async def test_without_a_subscription_one_request_is_sent_per_five_minutes():
    async with running(1) as broker:
        broker.telemetry.enable()
        async with consuming(broker, within=2000):
            await anyio.sleep(1000)

    assert 4 == len(requests(broker, GET))
    assert [] == requests(broker, PUSH)


async def test_disabled_member_sends_nothing_and_has_no_id():
    async with pushing(enable_metrics_push=False) as (broker, consumer):
        await anyio.sleep(300)
        with pytest.raises(ConsumerStateError, match="enable_metrics_push=False"):
            await consumer.client_instance_id()

    assert [] == requests(broker, GET)


# The id.


async def test_id_is_known_after_the_first_response():
    async with pushing() as (broker, consumer):
        client = await consumer.client_instance_id(timeout=1.0)
        await pushed(broker, 1)

    assert client == broker.telemetry.pushes[0].client_instance_id


async def test_wait_for_the_id_ends_after_its_timeout():
    async with running(1) as broker:
        broker.telemetry.enable()
        with broker.faults.on(GET, times=None).refuse("THROTTLING_QUOTA_EXCEEDED"):
            async with consuming(broker) as consumer:
                started = anyio.current_time()
                with pytest.raises(RequestTimedOutError, match="within 7 s"):
                    await consumer.client_instance_id(timeout=7.0)
                assert 7.0 == pytest.approx(anyio.current_time() - started)


async def test_wait_for_the_id_ends_when_brokers_stop_telemetry():
    async with running(1) as broker:
        broker.telemetry.enable()
        with broker.faults.on(GET).refuse("INVALID_REQUEST"):
            async with consuming(broker) as consumer:
                assert await consumer.client_instance_id() is None


# Errors, lost responses, cancelling.


@pytest.mark.parametrize(
    "error",
    [
        "TELEMETRY_TOO_LARGE",
        "THROTTLING_QUOTA_EXCEEDED",
        "UNKNOWN_SUBSCRIPTION_ID",
        "UNSUPPORTED_COMPRESSION_TYPE",
    ],
)
async def test_rejected_push_is_contained_in_the_next_one(error):
    async with pushing() as (broker, consumer):
        broker.faults.on(PUSH, times=1).refuse(error)
        await read_records(consumer, 10)
        await pushed(broker, 2)

    assert totals(consumer.metrics()) == sums(broker.telemetry.pushes)


@pytest.mark.parametrize("error", ["INVALID_REQUEST", "INVALID_RECORD"])
async def test_push_rejected_for_good_ends_telemetry_with_one_warning(error, caplog):
    async with pushing() as (broker, consumer):
        await pushed(broker, 1)
        broker.faults.on(PUSH, times=None).refuse(error)
        await anyio.sleep(200)
        await read_records(consumer, 10)

    assert 2 == len(requests(broker, PUSH))
    assert 1 == len(requests(broker, GET))
    (line,) = [text for text in caplog.messages if "not pushed any more" in text]
    assert error in line


async def test_lost_push_is_contained_in_the_next_one_five_minutes_later():
    async with pushing() as (broker, consumer):
        broker.faults.on(PUSH, times=1).cut()
        await read_records(consumer, 10)
        await pushed(broker, 1)
        lost, accepted = requests(broker, PUSH)

    assert accepted.at - lost.at > 300
    assert totals(consumer.metrics()) == sums(broker.telemetry.pushes)


async def test_push_whose_response_is_lost_is_repeated_with_the_same_start():
    async with pushing() as (broker, consumer):
        broker.faults.on(PUSH, times=1).lose()
        await read_records(consumer, 10)
        await pushed(broker, 2)
        first, second = broker.telemetry.pushes[:2]

    assert first.values[FETCHED] <= second.values[FETCHED]
    assert start_of(first, FETCHED) == start_of(second, FETCHED)


def start_of(push, name):
    (of_client,) = MetricsData.FromString(push.data).resource_metrics
    (metric,) = [
        each for each in of_client.scope_metrics[0].metrics if each.name == name
    ]
    return metric.sum.data_points[0].start_time_unix_nano


async def test_broker_that_does_not_respond_delays_metadata_by_seconds_only():
    async with running(1) as broker:
        broker.telemetry.enable()
        with broker.faults.on(GET, times=1).stall():
            async with consuming(broker) as consumer:
                await read_records(consumer, 1)
                await anyio.sleep(2 * telemetry.REQUEST_TIMEOUT)
                assert consumer.connected


async def test_close_does_not_wait_for_a_broker_that_does_not_respond():
    async with pushing() as (broker, _):
        await pushed(broker, 1)
        broker.faults.on(PUSH, times=None).stall()
        started = anyio.current_time()

    assert anyio.current_time() - started < 1.6


async def test_closing_before_the_first_push_pushes_once():
    async with pushing() as (broker, consumer):
        await read_records(consumer, 10)

    (push,) = broker.telemetry.pushes
    assert push.terminating
    assert totals(consumer.metrics()) == sums([push])


async def test_connection_is_closed_at_the_end():
    async with running(1) as broker:
        broker.telemetry.subscribe(interval=1.0)
        network = SlowNetwork(broker)
        async with consuming(broker, network=network):
            await anyio.sleep(30)

    assert 0 == network.open


# Sizes, and the package.


async def test_metrics_beyond_the_limit_are_left_out_with_one_warning(caplog):
    async with running(10, settings={"telemetry.max.bytes": 2500}) as broker:
        broker.telemetry.subscribe(interval=INTERVAL)
        async with consuming(broker, member_id=MEMBER):
            await pushed(broker, 3)

    assert 0 < len(broker.telemetry.pushes[0].values) < len(METRICS)
    (line,) = [text for text in caplog.messages if "telemetry.max.bytes" in text]
    assert "max_bytes=2500" in line


async def test_without_the_package_nothing_is_pushed_and_a_warning_says_why(
    caplog, monkeypatch
):
    monkeypatch.setitem(sys.modules, telemetry.MODULE, None)
    async with pushing() as (broker, consumer):
        await read_records(consumer, 10)
        await anyio.sleep(500)
        assert await consumer.client_instance_id() is not None

    assert [] == requests(broker, PUSH)
    (line,) = [text for text in caplog.messages if "metrics are not pushed" in text]
    assert "pip install 'sharecons[telemetry]'" in line
    assert f"group={GROUP}" in line


@pytest.mark.slow("starts an interpreter")
def test_consumer_loads_no_telemetry_until_a_broker_collects_metrics():
    program = (
        "import sys; from sharecons import ShareConsumer, ShareWorker; "
        "ShareConsumer('orders', group_id='g'); "
        "print([name for name in sys.modules if 'opentelemetry' in name "
        "or name.endswith(('member.telemetry', 'push_cycle', 'push_payload'))])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )

    assert "[]" == ended.stdout.strip(), ended.stderr
