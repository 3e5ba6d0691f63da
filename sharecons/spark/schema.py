"""The source's columns: as in Spark's own Kafka source, and deliveryCount."""

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

__all__ = ["check_schema", "source_schema"]


def source_schema(*, include_headers: bool) -> StructType:
    """Return the columns of the source."""
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


def check_schema(requested: Any, *, include_headers: bool) -> None:
    """Check that a reader requests the source's own columns, nullable or not.

    Raises:
        ConfigurationError: the user has set another schema.
    """
    expected = source_schema(include_headers=include_headers)
    if requested.simpleString() != expected.simpleString():
        raise ConfigurationError(
            "sharegroup has columns of its own and takes no schema; remove "
            "schema(...), and cast key and value in the query"
        )
