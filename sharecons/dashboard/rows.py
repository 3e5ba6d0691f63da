"""The rows of the overview: the worst group first."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sharecons.admin import Result, Results
from sharecons.dashboard.history import History, Rates
from sharecons.escaping import escape
from sharecons.group_state.group_states import GroupState, PartitionState, Unread
from sharecons.inspection.diagnosis.findings import Severity
from sharecons.inspection.inspect import GroupInspection, inspection_of
from sharecons.inspection.picture import remarks_of

__all__ = [
    "GroupRow",
    "OldValue",
    "TopicRow",
    "group_row",
    "old_values_of",
    "topic_rows",
    "worst_first",
]


class OldValue(NamedTuple):
    """Values that could not be read, and are shown as they were, or not at all.

    Attributes:
        what: the sources.
        error: why.
        at: when they were read, in seconds since the epoch; None if never.
    """

    what: str
    error: str
    at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A group of the overview; None means unknown.

    Attributes:
        inspection: its findings; None if it could not be described.
        lag: the sum of all partitions.
        oldest_age: seconds since the oldest unsettled record was written.
        old: values that are not of the latest collection.
    """

    group_id: str
    state: GroupState
    inspection: GroupInspection | None
    severity: Severity
    remarks: tuple[tuple[str, Severity, str], ...]
    lag: int | None
    rates: Rates | None
    oldest_age: float | None
    old: tuple[OldValue, ...]

    @property
    def name(self) -> str:
        """The id, for people."""
        return escape(self.group_id)


def group_row(
    group_id: str, state: GroupState, history: History, now: float
) -> GroupRow:
    """Return the row of a group."""
    inspection = None
    if state.group is not None:
        shown = {key: _result(one) for key, one in sorted(state.partitions.items())}
        inspection = inspection_of(state, Results(shown), at=now)
    remarks = () if inspection is None else tuple(remarks_of(inspection))
    old = tuple(old_values_of(state))
    worst = max((severity for _, severity, _ in remarks), default=Severity.FINE)
    return GroupRow(
        group_id=group_id,
        state=state,
        inspection=inspection,
        severity=max(worst, Severity.WARNING) if old else worst,
        remarks=remarks,
        lag=_sum(one.lag for one in state.partitions.values()),
        rates=_rates(group_id, history),
        oldest_age=_age(state.partitions.values(), now),
        old=old,
    )


class TopicRow(NamedTuple):
    """A topic of a group; None means unknown."""

    topic: str
    partitions: int
    lag: int | None
    rates: Rates | None
    oldest_age: float | None


def topic_rows(row: GroupRow, history: History, now: float) -> list[TopicRow]:
    """Return the topics of a group, by name."""
    found: dict[str, list[PartitionState]] = {}
    of_group = history.topics.get(row.group_id, {})
    for key, one in row.state.partitions.items():
        found.setdefault(key.topic, []).append(one)
    rows: list[TopicRow] = []
    for topic, partitions in sorted(found.items()):
        series = of_group.get(topic)
        rates = series.rates if series else None
        lag = _sum(one.lag for one in partitions)
        rows.append(TopicRow(topic, len(partitions), lag, rates, _age(partitions, now)))
    return rows


def _age(partitions: Iterable[PartitionState], now: float) -> float | None:
    ages = (one.age(now) for one in partitions)
    return max((age for age in ages if age is not None), default=None)


def worst_first(
    rows: Mapping[str, GroupRow], not_ready: Container[str] = ()
) -> list[GroupRow]:
    """Return the rows by severity, then by lag, then by name.

    Groups of `not_ready` have workers that are not ready, which is a warning.
    """

    def key(row: GroupRow) -> tuple[int, int, str]:
        severity = row.severity
        if row.group_id in not_ready:
            severity = max(severity, Severity.WARNING)
        return -severity, -(row.lag or 0), row.group_id

    return sorted(rows.values(), key=key)


def old_values_of(state: GroupState) -> Iterator[OldValue]:
    """Yield what could not be read; sources of one error and time are one value."""
    first: dict[tuple[str, str], Unread] = {}
    for unread in (state.unread, *(one.unread for one in state.partitions.values())):
        for source, each in unread.items():
            first.setdefault((source, str(each.error)), each)
    sources: dict[tuple[str, int | None], list[str]] = {}
    for (name, reason), each in first.items():
        at = None if each.at is None else int(each.at)
        sources.setdefault((reason, at), []).append(name)
    for (reason, at), names in sources.items():
        yield OldValue(", ".join(names), escape(reason), at)


def _result(one: PartitionState) -> Result[PartitionState]:
    """Return a partition, even with old values; an error if it has none."""
    for source in ("offsets", "states"):
        if source in one.unread and one.unread[source].at is None:
            return Result(error=one.unread[source].error)
    return Result(one)


def _sum(values: Iterator[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _rates(group_id: str, history: History) -> Rates | None:
    of_topics = history.topics.get(group_id, {}).values()
    rates = [each.rates for each in of_topics]
    known = [each for each in rates if each is not None]
    if not known:
        return None
    lags = [each.points[-1].lag for each in of_topics]
    lag = None if None in lags else sum(each or 0 for each in lags)
    settled = sum(each.settled for each in known)
    written = sum(each.written for each in known)
    return Rates.of(settled, written, lag)
