"""Parses and checks the options of the source.

The names are the same as in Spark's own Kafka source, if it has the option, and
`kafka.` with the names of Kafka's Java clients. Spark passes them in lower case. Each
error is one sentence that names the option.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from sharecons.config import validation as client_options
from sharecons.config.security import Security
from sharecons.config.validation import whole_number
from sharecons.errors import ConfigurationError
from sharecons.properties import arguments
from sharecons.properties.consumer_properties import ARGUMENTS, convert_property
from sharecons.properties.errors import PropertyError
from sharecons.properties.known_properties import SUPPORTED, unknown_warning
from sharecons.spark.ledger_options import parse_ledger_option
from sharecons.spark.refused_options import reason_against
from sharecons.spark.units import parse_duration, parse_size

__all__ = ["QueryOptions", "load_security", "read_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """The parsed options of one query; times in seconds.

    Attributes:
        topic_pattern: the topics whose whole names match are read, and `topics` is
            empty.
        max_offsets_ahead: acquiring pauses while this many offsets of the ledger are
            not planned by Spark; None: it follows the batches.
        batch_ends: by the ids of ledgers, the positions at which batches ended whose
            results are stored; set by the pipeline.
        security: the `kafka.*` options for TLS and SASL, without that prefix. They are
            passed to tasks as text, since TLS contexts cannot be pickled.
    """

    bootstrap_servers: str
    group_id: str
    ledger_location: str
    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    include_headers: bool = False
    max_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay: float = 900.0
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    fail_on_data_loss: bool = True
    starting_position: int | str = "new"
    ending_position: int | None = None
    load_id: str | None = None
    idle_timeout: float = 10.0
    max_offsets_ahead: int | None = None
    batch_ends: Mapping[str, Sequence[int]] = field(default_factory=dict)
    offset_reset: str | None = None
    client_id: str = "sharecons-spark"
    client_rack: str | None = None
    enable_metrics_push: bool = True
    request_timeout: float = 30.0
    max_wait: float = 0.5
    min_bytes: int = 1
    max_bytes: int = 8 << 20
    max_records: int = 60_000
    security: Mapping[str, str] = field(default_factory=dict, repr=False)
    ledger_options: Mapping[str, Any] = field(default_factory=dict, repr=False)


def read_options(given: Mapping[str, str], *, streaming: bool = True) -> QueryOptions:
    """Parse a query's options.

    Raises:
        ConfigurationError: an option is unknown, missing, invalid, or contradicts
            another one.
    """
    # The case of names is ignored, as in Spark.
    lower = {name.lower(): (name, value) for name, value in given.items()}
    _check_names(lower)
    read: dict[str, Any] = {"ledger_options": {}, "security": {}}
    for key, (name, value) in lower.items():
        if key.startswith(LEDGER_PREFIX):
            argument = name[len(LEDGER_PREFIX) :]
            read["ledger_options"][argument] = parse_ledger_option(name, value)
        elif key.startswith(SECURITY_PREFIXES):
            read["security"][key.removeprefix("kafka.")] = value
        else:
            option = _OPTIONS[key]
            read[option.attribute] = option.read(option.name, value)
    _check_present(read, any_given=bool(given))
    options = QueryOptions(**read)
    _check_combinations(options, lower, streaming=streaming)
    return options


LEDGER_PREFIX: Final = "ledger."
"""Prefix of the arguments of the ledger's filesystem."""

SECURITY_PREFIXES: Final = (
    "kafka.security.",
    "kafka.ssl.",
    "kafka.sasl.",
    "kafka.enable.ssl.certificate.verification",
)
"""Kafka's properties for TLS and SASL, by Java's names and librdkafka's."""


def load_security(properties: Mapping[str, str]) -> Security | None:
    """Return the client settings for `QueryOptions.security`; None if it is empty.

    Reads the files that it names.

    Raises:
        ConfigurationError: an option is invalid, or a file cannot be read.
    """
    if not properties:
        return None
    try:
        return arguments.load_security(properties)
    except ConfigurationError as error:
        raise ConfigurationError(f"kafka.{error}") from error


def _text(name: str, value: str) -> str:
    if not value.strip():
        raise ConfigurationError(f"{name} is empty; set a value, or remove the option")
    return value.strip()


def _string(name: str, value: str) -> str:
    return client_options.check_string(name, _text(name, value))


def _flag(name: str, value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise ConfigurationError(f"{name} must be true or false, not {value!r}")
    return value.strip().lower() == "true"


def _count(minimum: int) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        number = whole_number(value.strip())
        if number is None or number < minimum:
            raise ConfigurationError(
                f"{name} must be an integer of at least {minimum}, not {value!r}"
            )
        return number

    return read


def _topics(name: str, value: str) -> tuple[str, ...]:
    topics = tuple(topic.strip() for topic in value.split(",") if topic.strip())
    if not topics:
        raise ConfigurationError(
            f"{name} names no topic; set one, or several separated by commas"
        )
    return client_options.check_topics(topics, name=name)


def _pattern(name: str, value: str) -> str:
    try:
        re.compile(_text(name, value))
    except re.error as error:
        raise ConfigurationError(
            f"{name} {value!r} is not a regular expression of Python's: {error}"
        ) from error
    return value.strip()


def _property(name: str, value: str) -> object:
    try:
        return convert_property(name.removeprefix("kafka."), _text(name, value))
    except PropertyError as error:
        raise ConfigurationError(f"{name} {error.reason}") from error


def _offset_reset(name: str, value: str) -> str | None:
    try:
        return client_options.check_offset_reset(value.strip())
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{name} must be earliest, latest, or by_duration: with an ISO 8601 "
            f"duration (as in by_duration:PT1H), not {value!r}"
        ) from error


def _position(name: str, value: str) -> int | str:
    word = value.strip().lower()
    if word in ("new", "earliest"):
        return word
    position = whole_number(word)
    if position is not None and position >= 0:
        return position
    raise ConfigurationError(
        f"{name} must be a position in the ledger, 'earliest' (the whole ledger) or "
        f"'new' (the records that this read acquires), not {value!r}"
    )


_NO_POSITIONS: Final = (
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)


def _batch_ends(name: str, value: str) -> Mapping[str, Sequence[int]]:
    try:
        found = json.loads(value)
        return {ledger: [int(end) for end in ends] for ledger, ends in found.items()}
    except _NO_POSITIONS as error:
        raise ConfigurationError(
            f"{name} must be positions by the id of a ledger in JSON "
            '(as in {"4f...": [100, 200]})'
        ) from error


@dataclass(frozen=True, slots=True)
class _Option:
    name: str
    attribute: str
    read: Callable[[str, str], Any]


_OPTIONS: Final[Mapping[str, _Option]] = {
    option.name.lower(): option
    for option in (
        _Option("kafka.share.group.id", "group_id", _string),
        _Option("subscribe", "topics", _topics),
        _Option("subscribePattern", "topic_pattern", _pattern),
        _Option("ledgerLocation", "ledger_location", _text),
        _Option("includeHeaders", "include_headers", _flag),
        _Option("maxOffsetsPerTrigger", "max_offsets_per_trigger", _count(1)),
        _Option("maxBytesPerTrigger", "max_bytes_per_trigger", parse_size),
        _Option("minOffsetsPerTrigger", "min_offsets_per_trigger", _count(1)),
        _Option("maxTriggerDelay", "max_trigger_delay", parse_duration),
        _Option("minPartitions", "min_partitions", _count(1)),
        _Option("maxRecordsPerPartition", "max_records_per_partition", _count(1)),
        _Option("failOnDataLoss", "fail_on_data_loss", _flag),
        _Option("startingPosition", "starting_position", _position),
        _Option("endingPosition", "ending_position", _count(0)),
        _Option("loadId", "load_id", _text),
        _Option("idleTimeout", "idle_timeout", parse_duration),
        _Option("maxOffsetsAhead", "max_offsets_ahead", _count(1)),
        _Option("batchEnds", "batch_ends", _batch_ends),
        _Option("kafka.share.auto.offset.reset", "offset_reset", _offset_reset),
        *(
            _Option(f"kafka.{name}", argument, _property)
            for name, (argument, _) in ARGUMENTS.items()
            if not name.startswith(("group.", "share."))
        ),
    )
}

_REQUIRED: Final = (
    "kafka.bootstrap.servers",
    "kafka.share.group.id",
    "ledgerLocation",
)

# Checks.


NO_TABLES: Final = (
    "Spark does not pass the options of a table (CREATE TABLE) to a source that is "
    "written in Python: use CREATE TEMPORARY VIEW ... USING sharegroup OPTIONS (...) "
    'for batches, and spark.readStream.format("sharegroup") for streams'
)


def _check_names(lower: Mapping[str, tuple[str, str]]) -> None:
    if "provider" in lower:
        # Spark sets this when it requests the columns for CREATE TABLE.
        raise ConfigurationError(NO_TABLES)
    for key, (name, _) in lower.items():
        if not _is_known(key):
            if refused := reason_against(key):
                raise ConfigurationError(f"{refused[0]} is not supported: {refused[1]}")
            raise ConfigurationError(
                f"{name} is not an option of sharegroup{_suggest(key)}"
            )


def _is_known(key: str) -> bool:
    if key.startswith(SECURITY_PREFIXES):
        return unknown_warning(key.removeprefix("kafka.")) is None
    return key in _OPTIONS or key.startswith(LEDGER_PREFIX)


def _suggest(key: str) -> str:
    from difflib import get_close_matches

    names = {known: option.name for known, option in _OPTIONS.items()}
    names |= {f"kafka.{name}": f"kafka.{name}" for name in SUPPORTED}
    found = get_close_matches(key, names, n=1, cutoff=0.75)
    return f"; did you mean {names[found[0]]}?" if found else ""


def _check_present(read: Mapping[str, Any], *, any_given: bool) -> None:
    for name in _REQUIRED:
        if _OPTIONS[name.lower()].attribute not in read:
            _raise_missing(name, any_given=any_given)
    if "topics" not in read and "topic_pattern" not in read:
        _raise_missing("subscribe", any_given=any_given)
    if "topics" in read and "topic_pattern" in read:
        raise ConfigurationError(
            "subscribe and subscribePattern are both set; remove one of them"
        )


def _raise_missing(name: str, *, any_given: bool) -> NoReturn:
    hint = "" if any_given else f". {NO_TABLES}"
    raise ConfigurationError(f"{name} is missing: {_HINTS[name]}{hint}")


_HINTS: Final[Mapping[str, str]] = {
    "kafka.bootstrap.servers": "set host:port of a broker, or of several separated by "
    "commas",
    "subscribe": "set the names of the topics, separated by commas, or "
    "subscribePattern",
    "kafka.share.group.id": "set the share group that the query is to join",
    "ledgerLocation": "set a directory for this query only, beside its checkpoint, in "
    "which the source stores the acquired offsets",
}


def _check_combinations(
    options: QueryOptions, lower: Mapping[str, object], *, streaming: bool
) -> None:
    min_offsets, max_offsets = (
        options.min_offsets_per_trigger,
        options.max_offsets_per_trigger,
    )
    if (
        min_offsets is not None
        and max_offsets is not None
        and min_offsets > max_offsets
    ):
        raise ConfigurationError(
            f"minOffsetsPerTrigger ({min_offsets}) is more than "
            f"maxOffsetsPerTrigger ({max_offsets})"
        )
    if "maxtriggerdelay" in lower and min_offsets is None:
        raise ConfigurationError(
            "maxTriggerDelay limits the wait for minOffsetsPerTrigger; set that too"
        )
    for key in ("startingposition", "endingposition", "loadid") if streaming else ():
        if key in lower:
            raise ConfigurationError(
                f"{_OPTIONS[key].name} is for spark.read; a stream continues from its "
                "checkpoint"
            )
    _check_positions(options)
    _check_security(options.security)


def _check_security(properties: Mapping[str, str]) -> None:
    # Kafka's own clients would connect without encryption.
    if properties and "security.protocol" not in properties:
        raise ConfigurationError(
            f"kafka.security.protocol is missing: kafka.{min(properties)} has no "
            "effect without it; set SSL, SASL_PLAINTEXT or SASL_SSL"
        )
    load_security(properties)


def _check_positions(options: QueryOptions) -> None:
    start, end = options.starting_position, options.ending_position
    if end is None:
        return
    if options.load_id is not None:
        raise ConfigurationError(
            "loadId names the records that a read acquires, but a read with "
            "endingPosition acquires nothing; remove one of them"
        )
    if start == "new":
        raise ConfigurationError(
            "endingPosition is for reading the ledger again; set startingPosition too, "
            "to a position or 'earliest'"
        )
    if isinstance(start, int) and start > end:
        raise ConfigurationError(
            f"startingPosition ({start}) is beyond endingPosition ({end})"
        )
