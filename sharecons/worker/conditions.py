"""The conditions of a worker: why it is not ready, or not live, in words.

Theory of operation
-------------------
A health port responds in a thread of its own, so that it also responds while a handler
blocks the event loop. Other threads cannot look at records that the event loop changes.
So a task in the event loop looks once a second (`look`), and leaves its findings as a
tuple. Any thread reads two facts by itself, since the event loop can be blocked: the
connection, and the time since the event loop ran.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, final

from sharecons.member.record_source import SourceState
from sharecons.record import TopicPartition
from sharecons.worker.health_policy import HealthPolicy
from sharecons.worker.loop_watch import LoopWatch
from sharecons.worker.machine.window import HeldUp
from sharecons.worker.missing_topics import MissingTopicsWatch
from sharecons.worker.positions import item_text

__all__ = ["Condition", "WorkerConditions"]

NO_PARTITIONS: Final = "no partitions assigned"
"""The begin of the problem of a member whose topics exist."""


class Condition(NamedTuple):
    """Something that is wrong with a worker now.

    Attributes:
        name: "stuck-handler", for example; see `HealthPolicy`.
        text: its subject, and what to do.
    """

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@final
class WorkerConditions:
    """Finds the conditions of one worker.

    Attributes:
        loop: the watch of its event loop.
        is_stopping, has_ended: set these.
        threads: returns how many threads of cancelled handlers have not ended, and how
            many calls can run; set this.
    """

    def __init__(self, source: SourceState, policy: HealthPolicy) -> None:
        self.policy = policy
        self._source = source
        self.loop = LoopWatch()
        self._topics = MissingTopicsWatch(
            lambda: source.missing_topics, policy.topics_missing_after
        )
        self.is_stopping = False
        self.has_ended = False
        self.threads: Callable[[], tuple[int, int]] = lambda: (0, 1)
        self._found: tuple[Condition, ...] = ()
        self._held_up: dict[TopicPartition, tuple[int, float]] = {}

    def look(
        self,
        now: float,
        held_up: Iterable[HeldUp],
        others: Mapping[str, str],
    ) -> None:
        """Look at the records that the worker holds; call this once a second.

        Args:
            now: the time, in seconds of any clock.
            held_up: the partitions whose windows are nearly full.
            others: texts by condition, of `LongCalls` and `FullQueues`.
        """
        self._topics.look(now)
        found = {
            "missing-topics": self._topics.problem(now),
            "held-window": self._held_window(now, held_up),
            **others,
        }
        self._found = tuple(
            Condition(name, text) for name, text in found.items() if text is not None
        )

    def _held_window(self, now: float, held_up: Iterable[HeldUp]) -> str | None:
        before = self._held_up
        self._held_up = {}
        longest: tuple[float, HeldUp] | None = None
        for each in held_up:
            partition, offset = each.item.topic_partition, each.item.record.offset
            known, since = before.get(partition, (None, now))
            if known != offset:
                since = now
            self._held_up[partition] = offset, since
            if longest is None or now - since > longest[0]:
                longest = now - since, each
        limit = self.policy.window_held_after
        if limit is None or longest is None or longest[0] < limit:
            return None
        seconds, (item, held_for) = longest
        topic, number = item.topic_partition
        return (
            f"no member receives further records of {topic}-{number} for "
            f"{seconds:.0f} s: {item_text(item)}, which this worker has held for "
            f"{held_for:.0f} s, is at the start of the full window; make its handler "
            "or its retries shorter, or use retry topics: see "
            "docs/worker-retries.md"
        )

    # For any thread.

    def all(self) -> tuple[Condition, ...]:
        """Return the conditions that the worker has now."""
        if self.has_ended:
            return (Condition("ended", "the worker has ended"),)
        found = [self._of_loop(), self._of_membership(), self._of_threads()]
        return (*(each for each in found if each is not None), *self._found)

    def not_live(self) -> tuple[Condition, ...]:
        """Return the conditions that fail the liveness."""
        return tuple(each for each in self.all() if each.name in self.policy.liveness)

    def not_ready(self) -> tuple[Condition, ...]:
        """Return the conditions that fail the readiness."""
        ignored = self.policy.ignored
        return tuple(each for each in self.all() if each.name not in ignored)

    def _of_loop(self) -> Condition | None:
        seconds = self.loop.seconds
        if seconds < self.policy.loop_blocked_after:
            return None
        line = self.loop.line()
        place = "by a handler or by other code" if line is None else f"at {line}"
        return Condition(
            "blocked-loop",
            f"the event loop has been blocked for {seconds:.0f} s, {place}; no "
            "heartbeats and renewals are sent meanwhile; run what blocks in a thread, "
            "as a plain function",
        )

    def _of_membership(self) -> Condition | None:
        if self.is_stopping:
            return Condition("stopping", "the worker is stopping")
        source, group = self._source, self._source.group_id
        if source.is_connected:
            texts = [text for text in source.problems if text.startswith(NO_PARTITIONS)]
            return Condition("unassigned", texts[0]) if texts else None
        problems = "; ".join(source.problems)
        if source.state == "new":
            text = "the worker was not started; call run(), or use `async with`"
            return Condition("starting", text)
        if source.state == "starting":
            text = f"connecting to {source.servers}, to join group {group!r}"
            if problems:
                text = _with_advice(f"{text}: {problems}")
            return Condition("starting", text)
        if source.seconds_since_heartbeat is None and not problems:
            return Condition(
                "starting", f"joining group {group!r}: no heartbeat is accepted yet"
            )
        problems = problems or "no heartbeat is accepted"
        text = f"not consuming in group {group!r}: {problems}"
        return Condition("disconnected", _with_advice(text))

    def _of_threads(self) -> Condition | None:
        threads, concurrency = self.threads()
        if threads < concurrency:
            return None
        return Condition(
            "no-threads",
            f"{threads} cancelled handlers have not ended, and take all threads; give "
            "what blocks in them a timeout: the log has the lines where they hang",
        )


def _with_advice(text: str) -> str:
    """Return a text with advice, unless a problem in it has some."""
    if "; " in text:
        return text
    return f"{text}; check that the brokers run and can be reached from here"
