"""Error responses for any API, without its handler.

If the response has an error field of its own, that is set, as Kafka does it; else the
error is set in each part (topic, partition, group) of the request.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sharecons.testing.broker.codec import (
    ErrorCode,
    Header,
    Request,
    Response,
    names,
    response_fields,
)

__all__ = ["error_code", "refusal"]


@dataclass(frozen=True, slots=True)
class _Parts:
    """A list in the response that mirrors a list of the request."""

    answered: str
    asked: str
    keys: Mapping[str, str]
    """The fields that identify a part: the response's name, and the request's."""
    inner: "_Parts | None" = None
    error: str = "error_code"


def _parts(
    answered: str, asked: str, *keys: str, inner: _Parts | None = None
) -> _Parts:
    return _Parts(answered, asked, {key: key for key in keys}, inner)


_INDICES: Final = _parts("partitions", "partitions", "partition_index")
_TOPICS: Final = _parts("topics", "topics", "name", "topic_id", inner=_INDICES)
_OF_SHARE: Final = _parts("responses", "topics", "topic_id", inner=_INDICES)
_RESOURCE: Final = ("resource_type", "resource_name")

# The name "" stands for a part that is a plain string or number in the request.
_MIRRORS: Final[Mapping[str, tuple[_Parts, ...]]] = {
    "Produce": (
        _parts(
            "responses",
            "topic_data",
            "name",
            "topic_id",
            inner=_parts("partition_responses", "partition_data", "index"),
        ),
    ),
    "Fetch": (
        _parts(
            "responses",
            "topics",
            "topic",
            "topic_id",
            inner=_Parts("partitions", "partitions", {"partition_index": "partition"}),
        ),
    ),
    "ListOffsets": (_TOPICS,),
    "Metadata": (_parts("topics", "topics", "name", "topic_id"),),
    "OffsetCommit": (_TOPICS,),
    "OffsetFetch": (
        _parts("groups", "groups", "group_id"),
        _Parts(
            "topics",
            "topics",
            {"name": "name"},
            _Parts("partitions", "partition_indexes", {"partition_index": ""}),
        ),
    ),
    "FindCoordinator": (_Parts("coordinators", "coordinator_keys", {"key": ""}),),
    "DescribeGroups": (_Parts("groups", "groups", {"group_id": ""}),),
    "CreateTopics": (_parts("topics", "topics", "name"),),
    "DeleteTopics": (
        _parts("responses", "topics", "name", "topic_id"),
        _Parts("responses", "topic_names", {"name": ""}),
    ),
    "DeleteRecords": (_TOPICS,),
    "AddPartitionsToTxn": (
        _Parts(
            "results_by_topic_v3_and_below",
            "v3_and_below_topics",
            {"name": "name"},
            _Parts(
                "results_by_partition",
                "partitions",
                {"partition_index": ""},
                error="partition_error_code",
            ),
        ),
    ),
    "TxnOffsetCommit": (_TOPICS,),
    "CreateAcls": (_parts("results", "creations"),),
    "DeleteAcls": (_parts("filter_results", "filters"),),
    "DescribeConfigs": (_parts("results", "resources", *_RESOURCE),),
    "ElectLeaders": (
        _Parts(
            "replica_election_results",
            "topic_partitions",
            {"topic": "topic"},
            _Parts("partition_result", "partitions", {"partition_id": ""}),
        ),
    ),
    "OffsetForLeaderEpoch": (
        _parts(
            "topics",
            "topics",
            "topic",
            inner=_parts("partitions", "partitions", "partition"),
        ),
    ),
    "DescribeTopicPartitions": (_parts("topics", "topics", "name"),),
    "IncrementalAlterConfigs": (_parts("responses", "resources", *_RESOURCE),),
    "AlterConfigs": (_parts("responses", "resources", *_RESOURCE),),
    "CreatePartitions": (_parts("results", "topics", "name"),),
    "DeleteGroups": (_Parts("results", "groups_names", {"group_id": ""}),),
    "ShareGroupDescribe": (_Parts("groups", "group_ids", {"group_id": ""}),),
    "ShareFetch": (_OF_SHARE,),
    "ShareAcknowledge": (_OF_SHARE,),
    "ReadShareGroupState": (
        _parts(
            "results",
            "topics",
            "topic_id",
            inner=_parts("partitions", "partitions", "partition"),
        ),
    ),
    "ReadShareGroupStateSummary": (
        _parts(
            "results",
            "topics",
            "topic_id",
            inner=_parts("partitions", "partitions", "partition"),
        ),
    ),
    "DescribeShareGroupOffsets": (_parts("groups", "groups", "group_id"),),
}


def refusal(
    request: Request, header: Header, code: ErrorCode, *, each: bool = False
) -> Response:
    """Return the fields of a response with an error.

    With `each`, the error is set in the parts even if the response has its own error.
    """
    known = response_fields(header.api_key, header.version)
    parts = [
        part
        for part in _MIRRORS.get(names(header.api_key), ())
        if part.answered in known and hasattr(request, part.asked)
    ]
    if "error_code" in known and not (each and parts):
        return {"error_code": code}
    return {
        part.answered: list(_refused(part, getattr(request, part.asked) or (), code))
        for part in parts
    }


def error_code(code: ErrorCode | int | str) -> ErrorCode:
    """Return an error by its number, or by its name in Kafka: NOT_COORDINATOR.

    Raises:
        ValueError: there is no such error.
    """
    if not isinstance(code, str):
        return ErrorCode(code)
    try:
        return ErrorCode[code.lower()]
    except KeyError:
        raise ValueError(f"Kafka has no error {code!r}") from None


def _refused(
    part: _Parts, asked: Iterable[Request], code: ErrorCode
) -> Iterable[Response]:
    for each in asked:
        known = dict(_known(part, each))
        if part.inner is None:
            yield {**known, part.error: code}
        else:
            inside = getattr(each, part.inner.asked)
            yield {
                **known,
                part.inner.answered: list(_refused(part.inner, inside, code)),
            }


def _known(part: _Parts, asked: Request) -> Iterable[tuple[str, object]]:
    """Yield the fields that identify a part: its name or id, as in the request."""
    for answered, name in part.keys.items():
        value = asked if name == "" else getattr(asked, name, None)
        if value is not None:
            yield answered, value
