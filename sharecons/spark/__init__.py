"""A share group as a source of Spark's: `spark.readStream.format("sharegroup")`.

    from sharecons.spark import ShareGroupDataSource

    spark.dataSource.register(ShareGroupDataSource)

docs/spark.md tells the rest. It needs the extra `spark` (pyspark, pyarrow).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharecons.spark.source import ShareGroupDataSource

__all__ = ["ShareGroupDataSource"]


def __getattr__(name: str) -> object:
    # Not imported before it is used: the ledger, and what reads it, need no Spark.
    if name != "ShareGroupDataSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sharecons.spark.source import ShareGroupDataSource

    return ShareGroupDataSource
