"""The columns of the source, as Spark's own Kafka source has them, and one more."""

from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from sharecons.errors import ConfigurationError

__all__ = ["check_schema", "schema_of"]


def schema_of(*, include_headers: bool) -> StructType:
    """Give the columns; `deliveryCount` is the one that Spark's source has not."""
    schema = (
        StructType()
        .add("key", BinaryType())
        .add("value", BinaryType())
        .add("topic", StringType())
        .add("partition", IntegerType())
        .add("offset", LongType())
        .add("timestamp", TimestampType())
        .add("timestampType", IntegerType())
        .add("deliveryCount", IntegerType())
    )
    if include_headers:
        header = StructType().add("key", StringType()).add("value", BinaryType())
        schema = schema.add("headers", ArrayType(header))
    return schema


def check_schema(asked: Any, *, include_headers: bool) -> None:
    """See that a reader asks for the columns that there are, nullable or not.

    Raises:
        ConfigurationError: it was given a schema of its own.
    """
    ours = schema_of(include_headers=include_headers)
    if asked.simpleString() != ours.simpleString():
        raise ConfigurationError(
            "sharegroup has columns of its own and takes no schema; leave schema(...) "
            "out, and cast key and value in the query"
        )
