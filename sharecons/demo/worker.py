"""One worker of the demo, which processes jobs and can be killed."""

from typing import Final

import anyio

from sharecons.demo.clock import DemoClock
from sharecons.demo.environment import Environment
from sharecons.demo.job_tracker import DELIVERY_LIMIT, JobTracker
from sharecons.demo.network import KillableNetwork
from sharecons.demo.plan import CONCURRENT_JOBS, MAX_DELIVERIES, Decision, Plan
from sharecons.net.io.transport import TcpNetwork
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.record import Record
from sharecons.worker.middleware import Attempt, CallNext
from sharecons.worker.outcome_events import OutcomeEvent
from sharecons.worker.outcomes import (
    Accepted,
    LockLost,
    Rejected,
    Released,
)
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.share_worker import ShareWorker

__all__ = ["DemoWorker", "InvalidJob", "ServiceUnavailable", "job_number"]

Job = Record[bytes, bytes]


class ServiceUnavailable(Exception):
    """A job has failed; another attempt can succeed."""


class InvalidJob(Exception):
    """A job fails in every worker."""


RETRY: Final = RetryPolicy(
    max_attempts=DELIVERY_LIMIT,
    # Longer than MAX_LOCK_TIME: a failed job is released for another worker.
    initial=60.0,
    by_exception={InvalidJob: RetryPolicy(max_attempts=MAX_DELIVERIES)},
)
MAX_LOCK_TIME: Final = 10.0
"""Seconds for which a worker holds a job; more than a job takes."""


class DemoWorker:
    """A `ShareWorker` that processes a few jobs at the same time.

    It reports deliveries and outcomes to the job tracker.
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
        self._killed = anyio.Event()
        self._decisions: dict[int, tuple[int, Decision]] = {}
        """Job number and decision by offset; there is only one partition."""

    async def run(self) -> None:
        """Process jobs until cancelled or killed; leave the group if cancelled.

        Raises:
            Error: the worker cannot join the group or fetch.
        """
        worker: ShareWorker[bytes, bytes] = ShareWorker(
            self._environment.topic,
            self.process,
            group_id=self._environment.group_id,
            bootstrap_servers=self._environment.bootstrap,
            # Acquires few records in advance, which a killed worker would lock.
            acquire_mode="record_limit",
            client_id=f"sharecons-demo-{self.name}",
            on_acknowledged=self._on_acknowledged,
            network=self._network,
            concurrency=CONCURRENT_JOBS,
            retry=RETRY,
            max_lock_time=MAX_LOCK_TIME,
            handle_signals=False,
            middleware=[self.note_delivery],
            on_outcome=self.on_outcome,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_when_killed, worker, tasks.cancel_scope)
            await worker.run()
            tasks.cancel_scope.cancel()

    def kill(self) -> None:
        """Stop without sending anything, like a process that gets SIGKILL."""
        self._network.kill()
        self._killed.set()
        self._tracker.on_killed(self.name, self._clock.now)
        self._clock.notify()

    async def _end_when_killed(
        self, worker: ShareWorker[bytes, bytes], running: anyio.CancelScope
    ) -> None:
        await self._killed.wait()
        self._environment.killed_members.append(worker.member_id)
        running.cancel()
        with anyio.CancelScope(shield=True):
            await self._network.close()

    async def process(self, job: Job) -> None:
        """Process one job: the handler.

        Raises:
            ServiceUnavailable: the plan lets this worker fail.
            InvalidJob: it is the job that always fails.
        """
        number, count = job_number(job), job.delivery_count
        await anyio.sleep(self._plan.duration(self.name, number, count))
        if number == self._plan.poison_job:
            raise InvalidJob(number)
        if self._plan.decide(self.name, number, count) is not Decision.ACCEPT:
            raise ServiceUnavailable(number)

    # Middleware and callbacks.

    async def note_delivery(
        self, attempt: Attempt[bytes, bytes], call_next: CallNext
    ) -> None:
        """Report a delivery before the handler runs."""
        job = attempt.record
        if not self._killed.is_set():
            self._tracker.on_delivered(
                job_number(job), self.name, job.delivery_count, self._clock.now
            )
            self._clock.notify()
        await call_next()

    def on_outcome(self, event: OutcomeEvent[bytes, bytes]) -> None:
        """Report an outcome, unless the worker was killed."""
        if self._killed.is_set():
            return  # a killed process decides nothing
        record, outcome = event.record, event.outcome
        number, now = job_number(record), self._clock.now
        if isinstance(outcome, LockLost):
            self._tracker.on_lock_expired(number, self.name, now)
        elif event.seconds is None:
            return  # the worker ends: no handler has failed
        elif (decision := DECISIONS.get(type(outcome))) is not None:
            self._decisions[record.offset] = number, decision
            self._tracker.on_acknowledged(number, self.name, decision, now)
        self._clock.notify()

    def _on_acknowledged(self, results: list[AcknowledgeResult]) -> None:
        if self._killed.is_set():
            return  # a killed process would not receive it
        for result in results:
            record = (
                self._tracker.on_ack_rejected
                if result.error
                else self._tracker.on_ack_confirmed
            )
            for offset in range(result.first_offset, result.last_offset + 1):
                # Records that the worker releases when it ends have no decision.
                if (made := self._decisions.pop(offset, None)) is not None:
                    number, decision = made
                    record(number, self.name, decision, self._clock.now)
        self._clock.notify()


DECISIONS: Final[dict[type, Decision]] = {
    Accepted: Decision.ACCEPT,
    Released: Decision.RELEASE,
    Rejected: Decision.REJECT,
}


def job_number(job: Job) -> int:
    """Return the job number in a record's value."""
    assert job.value is not None, "the demo wrote it"
    return int(job.value.split()[1])
