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
    api_name,
    response_fields,
)

__all__ = ["error_code", "error_response"]


@dataclass(frozen=True, slots=True)
class _Mirror:
    """A list in the response that mirrors a list of the request."""

    response_field: str
    request_field: str
    keys: Mapping[str, str]
    """The fields that identify a part: the response's name, and the request's."""
    inner: "_Mirror | None" = None
    error: str = "error_code"


def _mirror(
    response_field: str, request_field: str, *keys: str, inner: _Mirror | None = None
) -> _Mirror:
    return _Mirror(response_field, request_field, {key: key for key in keys}, inner)


_INDICES: Final = _mirror("partitions", "partitions", "partition_index")
_TOPICS: Final = _mirror("topics", "topics", "name", "topic_id", inner=_INDICES)
_OF_SHARE: Final = _mirror("responses", "topics", "topic_id", inner=_INDICES)
_RESOURCE: Final = ("resource_type", "resource_name")

# The name "" stands for a part that is a plain string or number in the request.
_MIRRORS: Final[Mapping[str, tuple[_Mirror, ...]]] = {
    "Produce": (
        _mirror(
            "responses",
            "topic_data",
            "name",
            "topic_id",
            inner=_mirror("partition_responses", "partition_data", "index"),
        ),
    ),
    "Fetch": (
        _mirror(
            "responses",
            "topics",
            "topic",
            "topic_id",
            inner=_Mirror("partitions", "partitions", {"partition_index": "partition"}),
        ),
    ),
    "ListOffsets": (_TOPICS,),
    "Metadata": (_mirror("topics", "topics", "name", "topic_id"),),
    "OffsetCommit": (_TOPICS,),
    "OffsetFetch": (
        _mirror("groups", "groups", "group_id"),
        _Mirror(
            "topics",
            "topics",
            {"name": "name"},
            _Mirror("partitions", "partition_indexes", {"partition_index": ""}),
        ),
    ),
    "FindCoordinator": (_Mirror("coordinators", "coordinator_keys", {"key": ""}),),
    "DescribeGroups": (_Mirror("groups", "groups", {"group_id": ""}),),
    "CreateTopics": (_mirror("topics", "topics", "name"),),
    "DeleteTopics": (
        _mirror("responses", "topics", "name", "topic_id"),
        _Mirror("responses", "topic_names", {"name": ""}),
    ),
    "DeleteRecords": (_TOPICS,),
    "AddPartitionsToTxn": (
        _Mirror(
            "results_by_topic_v3_and_below",
            "v3_and_below_topics",
            {"name": "name"},
            _Mirror(
                "results_by_partition",
                "partitions",
                {"partition_index": ""},
                error="partition_error_code",
            ),
        ),
    ),
    "TxnOffsetCommit": (_TOPICS,),
    "CreateAcls": (_mirror("results", "creations"),),
    "DeleteAcls": (_mirror("filter_results", "filters"),),
    "DescribeConfigs": (_mirror("results", "resources", *_RESOURCE),),
    "ElectLeaders": (
        _Mirror(
            "replica_election_results",
            "topic_partitions",
            {"topic": "topic"},
            _Mirror("partition_result", "partitions", {"partition_id": ""}),
        ),
    ),
    "OffsetForLeaderEpoch": (
        _mirror(
            "topics",
            "topics",
            "topic",
            inner=_mirror("partitions", "partitions", "partition"),
        ),
    ),
    "DescribeTopicPartitions": (_mirror("topics", "topics", "name"),),
    "IncrementalAlterConfigs": (_mirror("responses", "resources", *_RESOURCE),),
    "AlterConfigs": (_mirror("responses", "resources", *_RESOURCE),),
    "CreatePartitions": (_mirror("results", "topics", "name"),),
    "DeleteGroups": (_Mirror("results", "groups_names", {"group_id": ""}),),
    "ShareGroupDescribe": (_Mirror("groups", "group_ids", {"group_id": ""}),),
    "ShareFetch": (_OF_SHARE,),
    "ShareAcknowledge": (_OF_SHARE,),
    "ReadShareGroupState": (
        _mirror(
            "results",
            "topics",
            "topic_id",
            inner=_mirror("partitions", "partitions", "partition"),
        ),
    ),
    "ReadShareGroupStateSummary": (
        _mirror(
            "results",
            "topics",
            "topic_id",
            inner=_mirror("partitions", "partitions", "partition"),
        ),
    ),
    "DescribeShareGroupOffsets": (_mirror("groups", "groups", "group_id"),),
}


def error_response(
    request: Request, header: Header, code: ErrorCode, *, each: bool = False
) -> Response:
    """Return the fields of a response with an error.

    With `each`, the error is set in the parts even if the response has its own error.
    """
    known = response_fields(header.api_key, header.version)
    parts = [
        part
        for part in _MIRRORS.get(api_name(header.api_key), ())
        if part.response_field in known and hasattr(request, part.request_field)
    ]
    if "error_code" in known and not (each and parts):
        return {"error_code": code}
    return {
        part.response_field: list(
            _error_parts(part, getattr(request, part.request_field) or (), code)
        )
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


def _error_parts(
    part: _Mirror, parts: Iterable[Request], code: ErrorCode
) -> Iterable[Response]:
    for each in parts:
        known = dict(_identity(part, each))
        if part.inner is None:
            yield {**known, part.error: code}
        else:
            inside = getattr(each, part.inner.request_field)
            yield {
                **known,
                part.inner.response_field: list(_error_parts(part.inner, inside, code)),
            }


def _identity(part: _Mirror, request_part: Request) -> Iterable[tuple[str, object]]:
    """Yield the fields that identify a part: its name or id, as in the request."""
    for response_field, name in part.keys.items():
        value = request_part if name == "" else getattr(request_part, name, None)
        if value is not None:
            yield response_field, value
