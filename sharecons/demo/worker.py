"""One consumer at work on the jobs, who can be killed."""

from typing import Final

import anyio

from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.demo.clock import DemoClock
from sharecons.demo.environment import Environment
from sharecons.demo.job_tracker import Ledger
from sharecons.demo.network import KillableNetwork
from sharecons.demo.plan import HANDS, Plan, Verdict
from sharecons.errors import RecordStateError
from sharecons.net.io.transport import TcpNetwork
from sharecons.protocol.acknowledge.batcher import AcknowledgeResult
from sharecons.record import AcknowledgeType, Record

__all__ = ["Worker", "number_of"]

Bytes = bytes
Task = Record[Bytes, Bytes]

VERDICTS: Final = {
    AcknowledgeType.ACCEPT: Verdict.ACCEPT,
    AcknowledgeType.RELEASE: Verdict.RELEASE,
    AcknowledgeType.REJECT: Verdict.REJECT,
}


class Worker:
    """A member of the group that works a few jobs at a time, and says how each went.

    What it does and hears goes into the ledger as it happens.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        place: Environment,
        ledger: Ledger,
        watch: DemoClock,
    ) -> None:
        self.name = name
        self._plan = plan
        self._ledger = ledger
        self._watch = watch
        self._place = place
        self._network = KillableNetwork(TcpNetwork())
        self._scope = anyio.CancelScope()
        self._hands = anyio.Semaphore(HANDS)
        self._numbers: dict[int, int] = {}
        """Of jobs, by offset: there is one partition."""

    async def run(self) -> None:
        """Work until cancelled or killed; cancelled, it leaves the group in order.

        Raises:
            Error: the broker wants none of it.
        """
        consumer: ShareConsumer[Bytes, Bytes] = ShareConsumer(
            self._place.topic,
            group_id=self._place.group_id,
            bootstrap_servers=self._place.bootstrap,
            acknowledgement="explicit",
            # So that a killed one leaves little behind that it never looked at.
            acquire_mode="record_limit",
            auto_offset_reset="earliest",
            client_id=f"sharecons-demo-{self.name}",
            on_acknowledged=self._acknowledged,
            network=self._network,
        )
        with self._scope:
            async with consumer:
                try:
                    await self._take(consumer)
                finally:
                    await self._die(consumer)

    def kill(self) -> None:
        """End at once, saying nothing to anybody, as a process that gets SIGKILL."""
        self._network.kill()
        self._scope.cancel()
        self._ledger.killed(self.name, self._watch.now)
        self._watch.ring()

    async def _die(self, consumer: ShareConsumer[Bytes, Bytes]) -> None:
        if self._network.dead:
            self._place.dead.append(consumer.member_id)
            await self._network.close()
            await consumer.aclose(timeout=0)

    async def _take(self, consumer: ShareConsumer[Bytes, Bytes]) -> None:
        records = aiter(consumer)
        async with anyio.create_task_group() as tasks:
            while True:
                # A hand first: what is asked for is worked at once.
                await self._hands.acquire()
                tasks.start_soon(self._work, await anext(records))

    async def _work(self, task: Task) -> None:
        if self._network.dead:
            return  # killed while this was on its way from the consumer
        number, count = number_of(task), task.delivery_count
        self._numbers[task.offset] = number
        self._ledger.delivered(number, self.name, count, self._watch.now)
        self._watch.ring()
        await anyio.sleep(self._plan.duration(self.name, number, count))
        if self._network.dead:
            return  # killed in the moment between the end of the work and its word
        self._say(task, number, self._plan.verdict(self.name, number, count))
        self._watch.ring()
        self._hands.release()

    def _say(self, task: Task, number: int, verdict: Verdict) -> None:
        try:
            match verdict:
                case Verdict.ACCEPT:
                    task.accept()
                case Verdict.RELEASE:
                    task.release()
                case Verdict.REJECT:
                    task.reject()
        except RecordStateError:
            self._ledger.expired(number, self.name, self._watch.now)
        else:
            self._ledger.said(number, self.name, verdict, self._watch.now)

    def _acknowledged(self, results: list[AcknowledgeResult]) -> None:
        if self._network.dead:
            return  # nobody is there to hear it
        for result in results:
            book = self._ledger.refused if result.error else self._ledger.confirmed
            for offset in range(result.first_offset, result.last_offset + 1):
                number = self._numbers[offset]
                book(number, self.name, VERDICTS[result.type], self._watch.now)
        self._watch.ring()


def number_of(task: Task) -> int:
    """Read a job's number from its record's value."""
    assert task.value is not None, "the demo wrote it"
    return int(task.value.split()[1])
