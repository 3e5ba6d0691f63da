"""The state that a run of a redrive starts with: marks and notes."""

from collections.abc import Mapping
from dataclasses import dataclass

from sharecons._record import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.dead_letters.offset_ranges import OffsetRanges
from sharecons.dead_letters.origins import Origins
from sharecons.dead_letters.plan import RedrivePlan
from sharecons.dead_letters.progress import InFlight, Progress
from sharecons.dead_letters.progress_store import ProgressStore
from sharecons.dead_letters.reader import load_origins, log_ranges
from sharecons.errors import ConfigurationError
from sharecons.protocol.admin.models import LogBounds

__all__ = ["RedriveState", "load_redriven_origins", "load_state"]


@dataclass(frozen=True, slots=True)
class RedriveState:
    """The state by partition.

    Attributes:
        logs: the offsets that the log has.
        ranges: the offsets that the run looks at.
        marks: the marked offsets, except offsets that are redriven again.
        in_flight: the batch that was interrupted, or None.
    """

    logs: Mapping[TopicPartition, LogBounds]
    ranges: Mapping[TopicPartition, LogBounds]
    marks: dict[TopicPartition, OffsetRanges]
    in_flight: dict[TopicPartition, InFlight | None]


async def load_state(
    admin: ShareGroupAdmin, plan: RedrivePlan, store: ProgressStore
) -> RedriveState:
    """Load the stored progress of a redrive.

    Raises:
        ConfigurationError: the name was used for another target, or a selected dead
            letter is not in the log.
        BrokerError, RequestTimedOutError: the log or the progress cannot be read.
    """
    logs = await log_ranges(admin, plan.topic)
    _check_selected(plan, logs)
    stored = await store.load(logs)
    for key, progress in stored.items():
        _check_stored(plan, key, logs[key], progress)
    marks = {key: _marks(plan, key, log, stored[key]) for key, log in logs.items()}
    in_flight = {
        key: None if progress is None else progress.in_flight
        for key, progress in stored.items()
    }
    return RedriveState(
        logs=logs,
        ranges={key: _range(plan, key, log, marks[key]) for key, log in logs.items()},
        marks=marks,
        in_flight=in_flight,
    )


async def load_redriven_origins(admin: ShareGroupAdmin, state: RedriveState) -> Origins:
    """Return the origins of dead letters that are marked or in an interrupted batch.

    Raises:
        BrokerError, RequestTimedOutError: the log cannot be read.
    """
    settled = {
        key: marks
        if (noted := state.in_flight[key]) is None
        else marks.union(noted.letters)
        for key, marks in state.marks.items()
    }
    return await load_origins(admin, state.logs, settled)


def _check_selected(
    plan: RedrivePlan, logs: Mapping[TopicPartition, LogBounds]
) -> None:
    for each in plan.only or ():
        key = TopicPartition(plan.topic, each.partition)
        start, end = logs.get(key, LogBounds(0, 0))
        if not start <= each.offset < end:
            raise ConfigurationError(
                f"{key.topic}-{key.partition} has no dead letter at offset "
                f"{each.offset}: its log has the offsets from {start} to before {end}; "
                "`sharecons dead-letters list` shows the dead letters"
            )


def _check_stored(
    plan: RedrivePlan, key: TopicPartition, log: LogBounds, stored: Progress | None
) -> None:
    if stored is None:
        return
    if stored.plan != plan.digest:
        raise ConfigurationError(
            f"redrive {plan.name!r} was started with another target: use the same one "
            "to continue it, or another name"
        )
    if stored.marks.end > log.end:
        raise ConfigurationError(
            f"redrive {plan.name!r} has reached offset {stored.marks.end} of "
            f"{key.topic}-{key.partition}, which now ends at {log.end}: the topic is a "
            "new one; use another name"
        )


def _marks(
    plan: RedrivePlan, key: TopicPartition, log: LogBounds, stored: Progress | None
) -> OffsetRanges:
    marks = OffsetRanges.of([(0, log.start)])
    if stored is not None:
        marks = marks.union(stored.marks)
    if plan.again:
        marks = marks.without(plan.offsets_of(key.partition) or ())
    return marks


def _range(
    plan: RedrivePlan, key: TopicPartition, log: LogBounds, marks: OffsetRanges
) -> LogBounds:
    selected = plan.offsets_of(key.partition)
    if selected is None:
        return LogBounds(marks.low_water, log.end)
    if not selected:
        return LogBounds(log.end, log.end)
    return LogBounds(selected[0], selected[-1] + 1)
