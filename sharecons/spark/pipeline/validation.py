"""Divides records into rows and quarantined records.

A validated frame has the source's columns, `row` (a struct with the columns of the
schema) and `reason`. For each record one of these two is null.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql import types as spark

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.avro_schemas import read_schema
from sharecons.spark.pipeline.decoding import Decoding, decode_column, decoder_of
from sharecons.spark.pipeline.own_columns import (
    OwnColumns,
    check_different,
    key_columns,
    partition_columns,
)
from sharecons.spark.pipeline.settings import Settings

__all__ = ["Rows", "select_quarantined", "validate"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Settings for converting records to rows.

    Attributes:
        own: the names of the pipeline's own columns.
        partition_by: the columns to partition by.
        merge_by: the columns of the key by which rows are merged.
        decoding: the settings for decoding values.
        schema: the columns of the schema.
    """

    own: OwnColumns
    partition_by: tuple[str, ...]
    merge_by: tuple[str, ...]
    decoding: Decoding
    schema: spark.StructType

    @classmethod
    def from_settings(cls, settings: Settings, zone: str) -> "Rows":
        """Check the settings; `zone` is Spark's session time zone.

        Raises:
            ConfigurationError: the schema, or the name of a column, is invalid.
        """
        schema, text = _schema(settings)
        decoding = Decoding(
            format=settings.format,
            schema=text,
            zone=zone,
            timestamp_unit=settings.timestamp_unit,
            rounds=settings.rounds,
            framing=settings.framing,
        )
        decoder_of(decoding)  # raises ConfigurationError
        own = OwnColumns(settings.prefix)
        own.check(schema.names)
        _check_nested(schema, "--schema")
        key = key_columns(settings.merge_by, schema)
        # Merged rows have no natural day: a later record replaces an earlier one.
        is_whole = key and not settings.partition_by
        requested = settings.partition_by
        by = () if is_whole else partition_columns(requested, schema.names, own)
        _check_partitions(schema, by)
        return cls(own, by, key, decoding, schema)

    def select(self, validated: DataFrame) -> DataFrame:
        """Return the rows: the columns of the schema, and the origin of each row."""
        valid = validated.where(sql.col("reason").isNull())
        origin = [sql.col(name).alias(new) for name, new in self.own.origin.items()]
        day = self.own.day
        if day in self.partition_by and day not in self.schema.names:
            origin.append(sql.to_date("timestamp").alias(day))
        return valid.select("row.*", *origin)


def validate(frame: DataFrame, rows: Rows) -> DataFrame:
    """Return the source's frame with the columns `row` and `reason`."""
    kind = spark.StructType(
        [
            spark.StructField("row", stored_type(rows.schema)),
            spark.StructField("reason", spark.StringType()),
        ]
    )
    # PySpark's stubs lack it.
    decode = cast("Any", sql).arrow_udf(_decode(rows.decoding), kind)
    found = frame.withColumn("decoded", decode(sql.col("value")))
    return found.select(*frame.columns, "decoded.row", "decoded.reason")


def _decode(decoding: Decoding) -> Callable[[Any], Any]:
    # Spark reads these annotations.
    def decode(values: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        found: pa.Array[Any] = decode_column(decoding, values)
        return found

    return decode


def select_quarantined(validated: DataFrame) -> DataFrame:
    """Return the other records: their bytes, their origin, and the reason."""
    return validated.where(sql.col("reason").isNotNull()).drop("row")


def stored_type(kind: Any) -> Any:
    """Return a type as stored in rows: all fields are nullable, VARCHAR is STRING."""
    if isinstance(kind, spark.StructType):
        fields = [spark.StructField(f.name, stored_type(f.dataType)) for f in kind]
        return spark.StructType(fields)
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(stored_type(kind.elementType))
    if isinstance(kind, spark.MapType):
        return spark.MapType(kind.keyType, stored_type(kind.valueType))
    return spark.StringType() if isinstance(kind, spark.VarcharType) else kind


def _schema(settings: Settings) -> tuple[spark.StructType, str]:
    """Return the columns, and the schema as text for the decoders."""
    if settings.format == "avro":
        return read_schema(settings.schema).kind, settings.schema
    columns = _columns(settings.schema)
    return columns, columns.json()


def _columns(ddl: str) -> spark.StructType:
    try:
        schema = spark.StructType.fromDDL(ddl)
    except ParseException as error:
        raise ConfigurationError(_no_columns(ddl)) from error
    if not isinstance(schema, spark.StructType) or not schema.fields:
        raise ConfigurationError(_no_columns(ddl))
    return schema


def _no_columns(ddl: str) -> str:
    example = "id BIGINT NOT NULL, amount DOUBLE"
    return f"--schema {ddl!r} is not a list of columns (as in {example!r})"


def _check_nested(kind: Any, where: str) -> None:
    """Check that the names of nested fields differ."""
    if isinstance(kind, spark.StructType):
        check_different(kind.names, where)
        for field in kind:
            _check_nested(field.dataType, f"{where}, {field.name}")
    elif isinstance(kind, spark.ArrayType):
        _check_nested(kind.elementType, where)
    elif isinstance(kind, spark.MapType):
        _check_nested(kind.valueType, where)


def _check_partitions(schema: spark.StructType, by: Sequence[str]) -> None:
    for field in schema:
        nested = (spark.StructType, spark.ArrayType, spark.MapType, spark.BinaryType)
        if field.name in by and isinstance(field.dataType, nested):
            kind = field.dataType.typeName().upper()
            raise ConfigurationError(
                f"--partition-by {field.name}: values of type {kind} cannot be "
                "names of directories"
            )
