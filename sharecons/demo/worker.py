"""One consumer that processes jobs and can be killed."""

from typing import Final

import anyio

from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.demo.clock import DemoClock
from sharecons.demo.environment import Environment
from sharecons.demo.job_tracker import JobTracker
from sharecons.demo.network import KillableNetwork
from sharecons.demo.plan import CONCURRENT_JOBS, Decision, Plan
from sharecons.errors import RecordStateError
from sharecons.net.io.transport import TcpNetwork
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.record import AcknowledgeType, Record

__all__ = ["Worker", "job_number"]

Bytes = bytes
Task = Record[Bytes, Bytes]

DECISIONS: Final = {
    AcknowledgeType.ACCEPT: Decision.ACCEPT,
    AcknowledgeType.RELEASE: Decision.RELEASE,
    AcknowledgeType.REJECT: Decision.REJECT,
}


class Worker:
    """A member of the group that processes a few jobs at the same time.

    It reports deliveries and acknowledgements to the job tracker.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        environment: Environment,
        tracker: JobTracker,
        clock: DemoClock,
    ) -> None:
        self.name = name
        self._plan = plan
        self._tracker = tracker
        self._clock = clock
        self._environment = environment
        self._network = KillableNetwork(TcpNetwork())
        self._scope = anyio.CancelScope()
        self._free_slots = anyio.Semaphore(CONCURRENT_JOBS)
        self._job_numbers: dict[int, int] = {}
        """Job numbers by offset; there is only one partition."""

    async def run(self) -> None:
        """Process jobs until cancelled or killed; leave the group if cancelled.

        Raises:
            Error: the consumer cannot join the group or fetch.
        """
        consumer: ShareConsumer[Bytes, Bytes] = ShareConsumer(
            self._environment.topic,
            group_id=self._environment.group_id,
            bootstrap_servers=self._environment.bootstrap,
            acknowledgement="explicit",
            # Acquires few records in advance, which a killed consumer would lock.
            acquire_mode="record_limit",
            auto_offset_reset="earliest",
            client_id=f"sharecons-demo-{self.name}",
            on_acknowledged=self._on_acknowledged,
            network=self._network,
        )
        with self._scope:
            async with consumer:
                try:
                    await self._consume(consumer)
                finally:
                    await self._close_if_killed(consumer)

    def kill(self) -> None:
        """Stop without sending anything, like a process that gets SIGKILL."""
        self._network.kill()
        self._scope.cancel()
        self._tracker.on_killed(self.name, self._clock.now)
        self._clock.notify()

    async def _close_if_killed(self, consumer: ShareConsumer[Bytes, Bytes]) -> None:
        if self._network.is_killed:
            self._environment.killed_members.append(consumer.member_id)
            await self._network.close()
            await consumer.aclose(timeout=0)

    async def _consume(self, consumer: ShareConsumer[Bytes, Bytes]) -> None:
        records = aiter(consumer)
        async with anyio.create_task_group() as tasks:
            while True:
                # Wait for a free slot first, so that a received job starts immediately.
                await self._free_slots.acquire()
                tasks.start_soon(self.process, await anext(records))

    async def process(self, task: Task) -> None:
        """Process one job, and acknowledge it unless the worker is killed."""
        if self._network.is_killed:
            return  # killed before the job started
        number, count = job_number(task), task.delivery_count
        self._job_numbers[task.offset] = number
        self._tracker.on_delivered(number, self.name, count, self._clock.now)
        self._clock.notify()
        await anyio.sleep(self._plan.duration(self.name, number, count))
        if self._network.is_killed:
            return  # killed before the acknowledgement
        self._acknowledge(task, number, self._plan.decide(self.name, number, count))
        self._clock.notify()
        self._free_slots.release()

    def _acknowledge(self, task: Task, number: int, decision: Decision) -> None:
        try:
            match decision:
                case Decision.ACCEPT:
                    task.accept()
                case Decision.RELEASE:
                    task.release()
                case Decision.REJECT:
                    task.reject()
        except RecordStateError:
            self._tracker.on_lock_expired(number, self.name, self._clock.now)
        else:
            self._tracker.on_acknowledged(number, self.name, decision, self._clock.now)

    def _on_acknowledged(self, results: list[AcknowledgeResult]) -> None:
        if self._network.is_killed:
            return  # a killed process would not receive it
        for result in results:
            record = (
                self._tracker.on_ack_rejected
                if result.error
                else self._tracker.on_ack_confirmed
            )
            for offset in range(result.first_offset, result.last_offset + 1):
                number = self._job_numbers[offset]
                record(number, self.name, DECISIONS[result.type], self._clock.now)
        self._clock.notify()


def job_number(task: Task) -> int:
    """Return the job number in a record's value."""
    assert task.value is not None, "the demo wrote it"
    return int(task.value.split()[1])
