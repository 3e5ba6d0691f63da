"""Which records are rows, and why the others are none.

A judged frame has the source's columns, `row` (the typed struct) and `reason`, which is
null for a valid row.
"""

from functools import reduce

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from sharecons.errors import ConfigurationError

__all__ = ["judged", "quarantine_of", "rows_of"]

_CORRUPT = "_corrupt"

_ORIGIN = ("topic", "partition", "offset", "timestamp", "deliveryCount")


def judged(frame: DataFrame, schema: str, kind: str) -> DataFrame:
    """Read each value by the schema, and say what is wrong with it.

    Raises:
        ConfigurationError: the schema is none, or Spark lacks its Avro module.
    """
    return _json(frame, schema) if kind == "json" else _avro(frame, schema)


def rows_of(frame: DataFrame, partition_by: tuple[str, ...]) -> DataFrame:
    """The valid rows: their fields, and where each came from."""
    valid = frame.where(sql.col("reason").isNull())
    origin = [sql.col(name).alias(f"_{name}") for name in _ORIGIN]
    rows = valid.select("row.*", *origin)
    if "day" in partition_by and "day" not in rows.columns:
        rows = rows.withColumn("day", sql.to_date("_timestamp"))
    unknown = [name for name in partition_by if name not in rows.columns]
    if unknown:
        raise ConfigurationError(
            f"--partition-by {unknown[0]}: the rows have no such column; they have "
            f"{', '.join(rows.columns)}"
        )
    return rows


def quarantine_of(frame: DataFrame) -> DataFrame:
    """What is no row: its bytes, where it came from, and the reason."""
    return frame.where(sql.col("reason").isNotNull()).drop("row")


def _json(frame: DataFrame, ddl: str) -> DataFrame:
    schema = _schema(ddl)
    reading = StructType(
        [StructField(f.name, f.dataType) for f in schema]
        + [StructField(_CORRUPT, StringType())]
    )
    read = sql.from_json(
        sql.col("value").cast("string"),
        reading,
        {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT},
    )
    frame = frame.withColumn("row", read)
    row = sql.col("row")
    bad = row.isNull() | row.getField(_CORRUPT).isNotNull()
    missing = [
        sql.when(row.getField(f.name).isNull(), sql.lit(f"{f.name} is missing"))
        for f in schema
        if not f.nullable
    ]
    frame = frame.withColumn(
        "reason", _first(_no_value(), _when(bad, "not JSON of this schema"), *missing)
    )
    return frame.withColumn("row", row.dropFields(_CORRUPT))


def _avro(frame: DataFrame, schema: str) -> DataFrame:
    from pyspark.sql.avro.functions import from_avro

    try:
        read = from_avro(sql.col("value"), schema, {"mode": "PERMISSIVE"})
        frame = frame.withColumn("row", read)
    except (AnalysisException, TypeError) as error:
        raise ConfigurationError(
            "Avro cannot be read: add the package org.apache.spark:spark-avro_2.13 of "
            f"Spark's own version (--packages), and see that the schema is one: {error}"
        ) from error
    bad = _when(sql.col("row").isNull(), "not Avro of this schema")
    return frame.withColumn("reason", _first(_no_value(), bad))


def _schema(ddl: str) -> StructType:
    try:
        schema = StructType.fromDDL(ddl)
    except ParseException as error:
        raise ConfigurationError(_no_columns(ddl)) from error
    if not isinstance(schema, StructType):
        raise ConfigurationError(_no_columns(ddl))
    return schema


def _no_columns(ddl: str) -> str:
    example = "id BIGINT NOT NULL, amount DOUBLE"
    return f"--schema {ddl!r} is no list of columns (as in {example!r})"


def _no_value() -> Column:
    return _when(sql.col("value").isNull(), "no value")


def _when(condition: Column, reason: str) -> Column:
    return sql.when(condition, sql.lit(reason))


def _first(*reasons: Column) -> Column:
    return reduce(lambda one, other: sql.coalesce(one, other), reasons)
