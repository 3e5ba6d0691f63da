"""Validation of a batch by the format and by the topic's settings."""

from collections.abc import Callable
from dataclasses import dataclass

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.log.batches import AppendError, BatchHeader, has_valid_crc
from sharecons.testing.broker.log.records import RecordHead, decode_heads, decompress

__all__ = ["LogRules", "check_batch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRules:
    """The settings of a topic that concern its logs; Kafka's defaults."""

    max_message_bytes: int = 1048588
    """`max.message.bytes`, for a batch as sent, including its header."""
    log_append_time: bool = False
    """`message.timestamp.type` is LogAppendTime."""
    timestamp_before_max: int = 2**63 - 1
    """`message.timestamp.before.max.ms`."""
    timestamp_after_max: int = 3_600_000
    """`message.timestamp.after.max.ms`."""
    is_compacted: bool = False
    """`cleanup.policy` includes compact."""

    @classmethod
    def from_settings(cls, setting: Callable[[str], str]) -> "LogRules":
        """Return the rules of a topic, given a function that returns its settings."""
        return cls(
            max_message_bytes=int(setting("max.message.bytes")),
            log_append_time=setting("message.timestamp.type") == "LogAppendTime",
            timestamp_before_max=int(setting("message.timestamp.before.max.ms")),
            timestamp_after_max=int(setting("message.timestamp.after.max.ms")),
            is_compacted="compact" in setting("cleanup.policy").split(","),
        )


def check_batch(
    batch: bytes, header: BatchHeader, rules: LogRules, now_ms: int
) -> None:
    """Check that a client is allowed to append a batch.

    Raises:
        AppendError: the batch is invalid, or a setting does not allow it.
    """
    _check_format(batch, header, rules)
    _check_counts(header)
    _check_compression(batch, header)
    _check_timestamps(batch, header, rules, now_ms)
    if rules.is_compacted:
        _check_keys(batch, header)


def _check_format(batch: bytes, header: BatchHeader, rules: LogRules) -> None:
    if header.base_offset != 0:
        raise AppendError(
            ErrorCode.invalid_record,
            f"The baseOffset of the record batch should be 0, but it is "
            f"{header.base_offset}",
        )
    if len(batch) > rules.max_message_bytes:
        raise AppendError(
            ErrorCode.message_too_large,
            f"The record batch size is {len(batch)} bytes, which exceeds the maximum "
            f"configured value of {rules.max_message_bytes}",
            setting="max.message.bytes",
        )
    if not has_valid_crc(batch, header):
        raise AppendError(
            ErrorCode.corrupt_message, f"Record is corrupt (stored crc = {header.crc})"
        )


def _check_counts(header: BatchHeader) -> None:
    message = None
    if header.last_offset_delta < 0:
        message = "Batch has an invalid offset range"
    elif header.record_count <= 0:
        message = f"Invalid reported count for record batch: {header.record_count}"
    elif header.record_count != header.last_offset_delta + 1:
        message = (
            f"Inconsistent batch offset range [0, {header.last_offset_delta}] and "
            f"count of records {header.record_count}"
        )
    elif header.producer_id >= 0 and header.base_sequence < 0:
        message = (
            f"Invalid sequence number {header.base_sequence} in record batch with "
            f"producerId {header.producer_id}"
        )
    elif header.is_control:
        message = "Clients are not allowed to write control records"
    if message is not None:
        raise AppendError(ErrorCode.invalid_record, message)


def _check_compression(batch: bytes, header: BatchHeader) -> None:
    # Records of uncompressed batches are not validated: decoding each record would
    # take longer than the rest of the append.
    try:
        if header.compression:
            decompress(batch, header)
    except ValueError as error:
        raise AppendError(ErrorCode.unknown_server_error, str(error)) from error


def _check_timestamps(
    batch: bytes, header: BatchHeader, rules: LogRules, now_ms: int
) -> None:
    earliest = now_ms - rules.timestamp_before_max
    latest = now_ms + rules.timestamp_after_max
    errors = {}
    is_early = header.first_timestamp < earliest
    limit = f"message.timestamp.{'before' if is_early else 'after'}.max.ms"
    if rules.log_append_time:
        limit = "message.timestamp.type"
        if header.has_log_append_time:
            message = "Producer should not set timestamp type to LogAppendTime."
            errors = dict.fromkeys(range(header.record_count), message)
    elif header.max_timestamp > latest or is_early:
        errors = {
            index: f"Timestamp {head.timestamp} of message with offset {index} is out "
            f"of range. The timestamp should be within [{earliest}, {latest}]"
            for index, head in enumerate(_checked_heads(batch, header))
            if not earliest <= head.timestamp <= latest
        }
    if errors:
        raise AppendError(
            ErrorCode.invalid_timestamp,
            "One or more records have been rejected due to invalid timestamp",
            errors,
            setting=limit,
        )


def _check_keys(batch: bytes, header: BatchHeader) -> None:
    errors = {
        index: "Compacted topic cannot accept message without key."
        for index, head in enumerate(_checked_heads(batch, header))
        if not head.has_key
    }
    if errors:
        raise AppendError(
            ErrorCode.invalid_record,
            "One or more records have been rejected due to "
            f"{len(errors)} record errors",
            errors,
            setting="cleanup.policy",
        )


def _checked_heads(batch: bytes, header: BatchHeader) -> list[RecordHead]:
    try:
        return list(decode_heads(batch, header))
    except ValueError as error:
        raise AppendError(ErrorCode.invalid_record, str(error)) from error
