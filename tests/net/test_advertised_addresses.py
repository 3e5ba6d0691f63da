"""Brokers that advertise an address that the client cannot reach."""

import anyio
import pytest

from sharecons import ShareGroupAdmin
from sharecons.errors import ConnectionFailedError, RequestTimedOutError
from tests.net.embedded import SlowNetwork, consuming, running
from tests.waiting import until

pytestmark = pytest.mark.anyio

ADVERTISED = 29092


class Network(SlowNetwork):
    """A network on which the advertised port refuses connections, or is silent."""

    def __init__(self, broker, is_silent):
        super().__init__(broker)
        self._is_silent = is_silent

    async def connect(self, endpoint):
        if endpoint.port == ADVERTISED:
            if self._is_silent:
                await anyio.sleep_forever()
            raise ConnectionRefusedError(111, "Connection refused")
        return await super().connect(endpoint)


def advertise(broker):
    def change_brokers(response, context):
        brokers = [{**each, "port": ADVERTISED} for each in response["brokers"]]
        return {**response, "brokers": brokers}

    def change_coordinators(response, context):
        found = [{**each, "port": ADVERTISED} for each in response["coordinators"]]
        return {**response, "coordinators": found}

    broker.faults.on("Metadata", times=None).change(change_brokers)
    broker.faults.on("FindCoordinator", times=None).change(change_coordinators)


@pytest.mark.parametrize("is_silent", [False, True])
async def test_admin_error_says_that_brokers_returned_the_address(is_silent):
    async with running() as broker:
        advertise(broker)
        async with ShareGroupAdmin(
            bootstrap_servers=broker.brokers[1],
            network=Network(broker, is_silent),
            timeout=2,
        ) as admin:
            for call in (
                admin.describe_share_groups("billing"),
                admin.list_groups(),
            ):
                results = await call
                (error,) = results.errors.values()
                assert isinstance(error, RequestTimedOutError)
                assert f":{ADVERTISED}: " in str(error)
                assert "brokers return this address (advertised.listeners)" in str(
                    error
                )


@pytest.mark.parametrize("is_silent", [False, True])
async def test_consumer_warns_that_brokers_returned_the_address(is_silent, caplog):
    async with running() as broker:
        advertise(broker)
        async with consuming(broker, network=Network(broker, is_silent)):
            await until(lambda: "advertised.listeners" in caplog.text)

    (line,) = [text for text in caplog.messages if "unreachable" in text]
    assert f":{ADVERTISED}" in line


async def test_error_of_a_bootstrap_address_does_not_say_so():
    async with running() as broker:
        async with ShareGroupAdmin(
            bootstrap_servers=f"127.0.0.1:{ADVERTISED}",
            network=Network(broker, is_silent=False),
            connect_timeout=0.5,
        ) as admin:
            with pytest.raises(ConnectionFailedError) as caught:
                await admin.list_groups()

    assert "refused" in str(caught.value)
    assert "advertised" not in str(caught.value)
