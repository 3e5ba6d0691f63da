"""Error responses for any API, without its handler.

If the response has an error field of its own, that is set, as Kafka does it; else the
error is set in each part (topic, partition, group) of the request.
"""

from collections.abc import Iterable, Mapping, Sequence
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
    inner: "_Mirror | None"
    error: str


_ERROR_FIELDS: Final = {"results_by_partition": "partition_error_code"}


def _parse(row: str) -> _Mirror:
    part, _, inner = row.partition(" / ")
    names, *keys = part.split()
    response_field, _, request_field = names.partition("=")
    return _Mirror(
        response_field,
        request_field or response_field,
        {name: source or name for name, _, source in (k.partition("=") for k in keys)},
        _parse(inner) if inner else None,
        _ERROR_FIELDS.get(response_field, "error_code"),
    )


_INDEXED: Final = "topics name topic_id / partitions partition_index"
_BY_TOPIC_ID: Final = "results=topics topic_id / partitions partition"
_OF_SHARE: Final = "responses=topics topic_id / partitions partition_index"
_RESOURCES: Final = "responses=resources resource_type resource_name"

# For each list, its field in the response, its field in the request if it has another
# name, and the fields that identify a part. "value" is a part that is a plain value.
_TABLE: Final[Mapping[str, Sequence[str]]] = {
    "Produce": [
        "responses=topic_data name topic_id / partition_responses=partition_data index"
    ],
    "Fetch": ["responses=topics topic topic_id / partitions partition_index=partition"],
    "ListOffsets": [_INDEXED],
    "Metadata": ["topics name topic_id"],
    "OffsetCommit": [_INDEXED],
    "OffsetFetch": [
        "groups group_id",
        "topics name / partitions=partition_indexes partition_index=value",
    ],
    "FindCoordinator": ["coordinators=coordinator_keys key=value"],
    "DescribeGroups": ["groups group_id=value"],
    "CreateTopics": ["topics name"],
    "DeleteTopics": [
        "responses=topics name topic_id",
        "responses=topic_names name=value",
    ],
    "DeleteRecords": [_INDEXED],
    "AddPartitionsToTxn": [
        "results_by_topic_v3_and_below=v3_and_below_topics name"
        " / results_by_partition=partitions partition_index=value"
    ],
    "TxnOffsetCommit": [_INDEXED],
    "CreateAcls": ["results=creations"],
    "DeleteAcls": ["filter_results=filters"],
    "DescribeConfigs": ["results=resources resource_type resource_name"],
    "OffsetForLeaderEpoch": ["topics topic / partitions partition"],
    "DescribeTopicPartitions": ["topics name"],
    "IncrementalAlterConfigs": [_RESOURCES],
    "AlterConfigs": [_RESOURCES],
    "CreatePartitions": ["results=topics name"],
    "DeleteGroups": ["results=groups_names group_id=value"],
    "ShareGroupDescribe": ["groups=group_ids group_id=value"],
    "ShareFetch": [_OF_SHARE],
    "ShareAcknowledge": [_OF_SHARE],
    "ReadShareGroupState": [_BY_TOPIC_ID],
    "ReadShareGroupStateSummary": [_BY_TOPIC_ID],
    "DescribeShareGroupOffsets": ["groups group_id"],
}
_MIRRORS: Final = {api: tuple(map(_parse, rows)) for api, rows in _TABLE.items()}


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
        value = request_part if name == "value" else getattr(request_part, name, None)
        if value is not None:
            yield response_field, value
