"""Makes `format("sharegroup")` known to Spark, without code (SPARK-45917).

When Spark first looks for a data source, it imports every installed module whose name
begins with `pyspark_`, and registers its `DefaultSource`. An error here would hide the
data sources of other packages, and an import of sharecons would delay every Spark
session where it is installed, by half a second. So sharecons is imported on first use.
"""

from typing import Any

from pyspark.sql.datasource import DataSource

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """The source that Spark registers; its instances are `ShareGroupDataSource`s."""

    def __new__(cls, options: dict[str, str]) -> Any:
        from sharecons.spark.source import ShareGroupDataSource

        return ShareGroupDataSource(options)

    @classmethod
    def name(cls) -> str:
        return "sharegroup"
