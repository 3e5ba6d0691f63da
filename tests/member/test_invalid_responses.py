"""Consumers whose broker returns invalid responses, none, or closes the connection.

Entering raises an error of the library, or the consumer recovers. There are no other
exceptions, no hangs and no request storms.
"""

import anyio
import pytest

from sharecons.errors import ConnectionFailedError
from tests.net.embedded import (
    STORM,
    SlowNetwork,
    accepted_offsets,
    busiest_second,
    consuming,
    running,
)

pytestmark = pytest.mark.anyio


def with_content(frame, content):
    """Return a response with another content after its correlation id."""
    changed = frame[4:8] + content
    return len(changed).to_bytes(4, "big") + changed


def with_body(body):
    """Return a fault: the response has another body."""
    header = b"\x00"  # no tagged fields
    return lambda fault: fault.corrupt(lambda frame: with_content(frame, header + body))


# The broker handles the request, whatever it then sends.
FAULTS = {
    "empty": with_body(b""),
    "noise": with_body(b"\xff" * 50),
    "zeros": with_body(b"\x00" * 50),
    "truncated": lambda fault: fault.corrupt(
        lambda frame: with_content(frame, frame[8:-2])
    ),
    "trailing": lambda fault: fault.corrupt(
        lambda frame: with_content(frame, frame[8:] + b"\x00")
    ),
    "cut": lambda fault: fault.cut(after=True),
    "no response": lambda fault: fault.lose(),
    "late": lambda fault: fault.delay(29.0),
}
APIS = [
    "Metadata",
    "FindCoordinator",
    "DescribeConfigs",
    "ShareGroupHeartbeat",
    "ShareFetch",
    "ShareAcknowledge",
]

every_api = pytest.mark.parametrize("api", APIS)
every_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())


@every_api
@every_fault
async def test_invalid_response_that_ends_is_recovered(api, fault):
    read = []
    async with running(8) as broker:
        fault(broker.faults.on(api, times=3))
        network = SlowNetwork(broker)
        async with consuming(broker, network=network) as consumer:
            with anyio.move_on_after(400):
                async for record in consumer:
                    read.append(record.offset)
                    # So slow that acknowledgements are sent without a fetch.
                    await anyio.sleep(0.3)
                    if len(accepted_offsets(broker)) == 7:
                        break

        assert set(range(8)) == set(read)
        # Leaving the loop does not accept its last record.
        assert accepted_offsets(broker) >= set(range(8)) - {read[-1]}
        assert busiest_second(broker) <= STORM
        assert 0 == network.open


@every_api
@pytest.mark.parametrize("name", ["noise", "cut", "no response", "late"])
async def test_persistent_invalid_response_causes_no_request_storm(api, name):
    async with running(8) as broker:
        FAULTS[name](broker.faults.on(api, times=None))
        network = SlowNetwork(broker)
        async with consuming(broker, network=network) as consumer:
            with anyio.move_on_after(70):
                async for _ in consumer:
                    await anyio.sleep(0.3)
            started = anyio.current_time()

        assert anyio.current_time() - started <= 10.1, "closing is bounded"
        assert busiest_second(broker) <= STORM
        assert len(broker.requests) < 70 * 10
        assert len(network.connects) < 70 * 3
        assert 0 == network.open


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "late"])
async def test_broker_without_versions_cannot_be_entered(name):
    async with running(8) as broker:
        FAULTS[name](broker.faults.on("ApiVersions", times=None))
        network = SlowNetwork(broker)
        started = anyio.current_time()

        with pytest.raises(ConnectionFailedError, match=r"127\.0\.0\.1:9092"):
            async with consuming(broker, network=network, connect_timeout=5.0):
                pass

        assert anyio.current_time() - started <= 5.01
        assert 0 == network.open


async def test_invalid_responses_of_every_api_cause_no_request_storm():
    async with running(8) as broker:
        network = SlowNetwork(broker)
        async with consuming(broker, network=network) as consumer:
            for api in ("ApiVersions", *APIS, "IncrementalAlterConfigs"):
                with_body(b"\xff" * 20)(broker.faults.on(api, times=None))
            broker.stop_broker(1)
            broker.start_broker(1)
            with anyio.move_on_after(30):
                await anext(aiter(consumer))

        assert busiest_second(broker) <= STORM
        assert 0 == network.open


@every_api
async def test_connection_that_ends_after_responses_is_opened_again(api):
    read = set()
    async with running(30) as broker:
        broker.faults.on(api, times=5).hang_up()
        network = SlowNetwork(broker)
        async with consuming(broker, network=network) as consumer:
            with anyio.move_on_after(300):
                async for record in consumer:
                    read.add(record.offset)
                    await anyio.sleep(0.05)
                    if len(read) == 30 and len(accepted_offsets(broker)) >= 29:
                        break

        assert set(range(30)) == read
        assert busiest_second(broker) <= STORM
        assert 0 == network.open


async def test_broker_that_restarts_is_used_again():
    read = set()
    async with running(10) as broker:
        network = SlowNetwork(broker)
        async with consuming(broker, network=network) as consumer:
            loop = aiter(consumer)
            while len(read) < 5:
                read.add((await anext(loop)).offset)
            broker.stop_broker(1)
            with anyio.move_on_after(60):
                while True:
                    read.add((await anext(loop)).offset)
            connects = len(network.connects)
            broker.start_broker(1)
            started_at = anyio.current_time()
            while len(read) < 10:
                read.add((await anext(loop)).offset)

            # The pauses between two attempts are no longer than a second or two.
            assert anyio.current_time() - started_at < 5
        assert connects < 60 * 5
        assert busiest_second(broker) <= STORM
