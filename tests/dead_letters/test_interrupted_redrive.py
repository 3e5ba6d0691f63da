"""Redrives that are interrupted anywhere, on a virtual clock."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from sharecons import ShareGroupAdmin
from sharecons.dead_letters import DeadLetters, parse_filter
from sharecons.dead_letters.models import DeadLetterRecord
from sharecons.dead_letters.plan import Decision
from sharecons.dead_letters.progress_store import RedriveConflictError
from sharecons.errors import AuthorizationError, BrokerError
from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.broker.handlers import produce
from tests.dead_letters.letters import DEAD, marks_of, new_letter, produce_letters
from tests.net.interrupts import interruptions

pytestmark = pytest.mark.anyio

COUNT = 12
ONCE = {(partition, offset): 1 for partition in range(2) for offset in range(6)}


@pytest.fixture(params=virtual_time.BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return virtual_time.backend(request.param)


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with EmbeddedBroker(listen=False) as broker:
        broker.create_topic(DEAD, partitions=2)
        produce_letters(broker, map(new_letter, range(COUNT)), partitions=2)
        yield broker


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Four dead letters a batch, so that there are four batches."""
    monkeypatch.setattr("sharecons.dead_letters.redrive.MAX_RECORDS", 4)
    return


@asynccontextmanager
async def letters_of(broker: EmbeddedBroker) -> AsyncIterator[DeadLetters]:
    """Connect a new client, as another process would."""
    async with ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers, network=broker.network, timeout=30.0
    ) as admin:
        yield DeadLetters.from_admin(admin, DEAD)


async def counts(broker: EmbeddedBroker, topic: str) -> dict[tuple[int, int], int]:
    """Return how often each dead letter is in a topic."""
    async with ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers, network=broker.network
    ) as admin:
        return await counts_by(admin, topic)


async def counts_by(admin: ShareGroupAdmin, topic: str) -> dict[tuple[int, int], int]:
    marks = await marks_of(admin, topic)
    return {(partition, offset): n for (_, partition, offset), n in marks.items()}


async def complete(broker: EmbeddedBroker, targets: list[str]) -> None:
    """Redrive to each target again: then it has each dead letter once."""
    async with ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers, network=broker.network, timeout=30.0
    ) as admin:
        letters = DeadLetters.from_admin(admin, DEAD)
        for target in targets:
            summary = await letters.redrive(to=target)
            assert 0 == summary.remaining
            assert ONCE == await counts_by(admin, target), target


@pytest.mark.slow("a redrive for each await", seconds=40)
@pytest.mark.timeout(300)
async def test_redrive_cancelled_at_any_await_writes_each_once(
    broker: EmbeddedBroker,
) -> None:
    topics: list[str] = []

    async def attempt(interrupted: Callable[[Awaitable[Any]], Awaitable[Any]]) -> None:
        target = f"target{len(topics)}"
        topics.append(target)
        broker.create_topic(target, partitions=2)
        async with letters_of(broker) as letters:
            await interrupted(letters.redrive(to=target))

    steps = [step async for step in interruptions(attempt)]

    assert len(steps) > 40
    await complete(broker, topics)


@pytest.mark.slow("a redrive for each await", seconds=40)
@pytest.mark.timeout(300)
async def test_redrive_cancelled_twice_at_any_await_writes_each_once(
    broker: EmbeddedBroker,
) -> None:
    """The run that completes an interrupted batch is itself interrupted."""
    topics: list[str] = []

    async def attempt(interrupted: Callable[[Awaitable[Any]], Awaitable[Any]]) -> None:
        target = f"target{len(topics)}"
        topics.append(target)
        broker.create_topic(target, partitions=2)
        with broker.faults.on("Produce", times=1).cut(after=True):
            async with letters_of(broker) as letters:
                with anyio.move_on_after(0.55):
                    await letters.redrive(to=target)
        async with letters_of(broker) as letters:
            await interrupted(letters.redrive(to=target))

    steps = [step async for step in interruptions(attempt)]

    assert len(steps) > 40
    await complete(broker, topics)


@pytest.mark.slow("a redrive for each await", seconds=40)
@pytest.mark.timeout(300)
async def test_filtered_redrive_cancelled_at_any_await_leaves_the_rest_for_others(
    broker: EmbeddedBroker,
) -> None:
    """A run with another filter continues it, and a run without one does the rest."""
    topics: list[str] = []
    numbers = (0, 3, 4, 7, 8, 11)
    some = parse_filter(*(f"key=k{number}" for number in numbers))
    another = parse_filter("key=k1", "key=k2", "key=k3")

    async def attempt(interrupted: Callable[[Awaitable[Any]], Awaitable[Any]]) -> None:
        target = f"target{len(topics)}"
        topics.append(target)
        broker.create_topic(target, partitions=2)
        async with letters_of(broker) as letters:
            await interrupted(letters.redrive(to=target, filter=some))
        async with letters_of(broker) as letters:
            await letters.redrive(to=target, filter=another)

    steps = [step async for step in interruptions(attempt)]

    assert len(steps) > 40
    await complete(broker, topics)


class LateProduce:
    """A Produce request of a killed process that reaches the log later."""

    def __init__(self) -> None:
        self._held: list[tuple[Any, Any]] = []

    def hold(self, request: Any, context: Any) -> None:
        self._held.append((request, context))

    async def arrive(self) -> None:
        for request, context in self._held:
            await produce.handle(request, context)
        assert self._held
        self._held.clear()

    async def arrive_first(self, request: Any, context: Any) -> Any:
        await self.arrive()
        return await produce.handle(request, context)


@asynccontextmanager
async def killed_redrive(broker: EmbeddedBroker) -> AsyncIterator[LateProduce]:
    """Kill a redrive while its first request for the target is on its way."""
    broker.create_topic("target", partitions=2)
    late = LateProduce()
    with broker.faults.on("Produce").respond(late.hold):
        async with letters_of(broker) as letters:
            with anyio.move_on_after(1.0):
                await letters.redrive(to="target")
    assert {} == await counts(broker, "target")
    yield late


async def test_request_of_killed_process_that_arrives_late_is_not_written(
    broker: EmbeddedBroker,
) -> None:
    async with killed_redrive(broker) as late, letters_of(broker) as letters:
        summary = await letters.redrive(to="target")
        await late.arrive()

    assert COUNT == summary.redriven
    assert ONCE == await counts(broker, "target")


@pytest.mark.parametrize("limit", [None, 1, 3])
async def test_request_of_killed_process_that_arrives_first_is_noticed(
    broker: EmbeddedBroker, limit: int | None
) -> None:
    """It arrives after the target was read, and before the rest is written.

    With a limit, the batches differ, and so do their sequence numbers.
    """
    async with killed_redrive(broker) as late, letters_of(broker) as letters:
        with broker.faults.on("Produce", times=1).respond(late.arrive_first):
            await letters.redrive(to="target", limit=limit)
        summary = await letters.redrive(to="target")

    assert 0 == summary.remaining
    assert ONCE == await counts(broker, "target")


@pytest.mark.parametrize("delay", [0.1, 0.4])
async def test_process_whose_claim_is_late_does_not_write_again(
    broker: EmbeddedBroker, delay: float
) -> None:
    """Neither finds progress; the claim of one overwrites the claim of the other."""
    broker.create_topic("target", partitions=2)
    ended: list[str] = []

    async def redrive(wait: float) -> None:
        await anyio.sleep(wait)
        async with letters_of(broker) as letters:
            try:
                await letters.redrive(to="target")
            except RedriveConflictError:
                ended.append("conflict")
            else:
                ended.append("done")

    broker.faults.on("OffsetCommit", times=1).stall(delay)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(redrive, 0.0)
        tasks.start_soon(redrive, 0.05)

    assert ["conflict", "done"] == sorted(ended)
    assert ONCE == await counts(broker, "target")


@pytest.mark.parametrize("api", ["Produce", "OffsetCommit", "OffsetFetch", "Fetch"])
@pytest.mark.parametrize("times", [1, 3])
async def test_lost_connections_are_survived(
    broker: EmbeddedBroker, api: str, times: int
) -> None:
    broker.create_topic("target", partitions=2)
    broker.faults.on(api, times=times).cut(after=True)

    async with letters_of(broker) as letters:
        summary = await letters.redrive(to="target")

    assert 12 == summary.redriven
    assert ONCE == await counts(broker, "target")


async def test_missing_producer_id_is_requested_again(broker: EmbeddedBroker) -> None:
    broker.create_topic("target", partitions=2)
    broker.faults.on("InitProducerId", times=3).refuse("COORDINATOR_LOAD_IN_PROGRESS")

    async with letters_of(broker) as letters:
        assert 12 == (await letters.redrive(to="target")).redriven


@pytest.mark.parametrize(
    "code", ["CLUSTER_AUTHORIZATION_FAILED", "COORDINATOR_NOT_AVAILABLE"]
)
async def test_denied_producer_id_ends_the_redrive(
    broker: EmbeddedBroker, code: str
) -> None:
    broker.create_topic("target", partitions=2)
    broker.faults.on("InitProducerId", times=None).refuse(code)

    async with letters_of(broker) as letters:
        with (
            anyio.fail_after(60),
            pytest.raises(BrokerError, match=f"no producer id: {code}") as failed,
        ):
            await letters.redrive(to="target")
    expected = code == "CLUSTER_AUTHORIZATION_FAILED"
    assert expected == isinstance(failed.value, AuthorizationError)


async def test_failed_batch_is_completed_by_the_next_run(
    broker: EmbeddedBroker,
) -> None:
    broker.create_topic("target", partitions=2)
    async with letters_of(broker) as letters:
        with (
            broker.faults.on("Produce", after=1).refuse(
                "TOPIC_AUTHORIZATION_FAILED", each=True
            ),
            pytest.raises(BrokerError),
        ):
            await letters.redrive(to="target")
        before = await counts(broker, "target")
        summary = await letters.redrive(to="target")

    assert 0 < len(before) < COUNT
    assert COUNT == len(before) + summary.redriven
    assert ONCE == await counts(broker, "target")


async def test_limit_in_an_interrupted_batch_leaves_its_rest(
    broker: EmbeddedBroker,
) -> None:
    broker.create_topic("target", partitions=2)
    async with letters_of(broker) as letters:
        with (
            broker.faults.on("Produce").refuse("TOPIC_AUTHORIZATION_FAILED", each=True),
            pytest.raises(BrokerError),
        ):
            await letters.redrive(to="target")
        assert {} == await counts(broker, "target")
        assert 1 == (await letters.redrive(to="target", limit=1)).redriven
        assert 1 == len(await counts(broker, "target"))
        assert 2 == (await letters.redrive(to="target", limit=2)).redriven
        assert 3 == len(await counts(broker, "target"))
        await letters.redrive(to="target")

    assert ONCE == await counts(broker, "target")


async def test_dry_run_leaves_out_what_an_interrupted_batch_has_written(
    broker: EmbeddedBroker,
) -> None:
    broker.create_topic("target", partitions=2)
    planned: list[int] = []

    def on_decision(letter: DeadLetterRecord, _: Decision) -> None:
        planned.append(letter.offset)

    async with letters_of(broker) as letters:
        with broker.faults.on("Produce", times=1).lose():
            with anyio.move_on_after(1.0):
                await letters.redrive(to="target")
        written = await counts(broker, "target")
        summary = await letters.plan_redrive(on_decision, to="target")

    assert len(written) > 0
    assert len(written) == summary.already_written
    assert COUNT == len(planned) + len(written)


async def test_deleted_target_of_interrupted_batch_is_reported(
    broker: EmbeddedBroker,
) -> None:
    broker.create_topic("target", partitions=2)
    async with letters_of(broker) as letters:
        with broker.faults.on("Produce", times=1).lose():
            with anyio.move_on_after(1.0):
                await letters.redrive(to="target")
        broker.delete_topic("target")
        summary = await letters.redrive(to="target")

    assert (0, 0) == (summary.redriven, summary.remaining)
    assert {"its target does not exist": 12} == summary.skipped
