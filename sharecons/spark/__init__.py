"""A Spark data source for share groups: `spark.readStream.format("sharegroup")`.

    from sharecons.spark import ShareGroupDataSource

    spark.dataSource.register(ShareGroupDataSource)

The user's manual is docs/spark.md. The extra `spark` installs pyspark and pyarrow.
Reading order: `source`, `stream` and `batch` (Spark's calls), `driver` and `acquirer`
(the member), `ledger` and `store` (the acquired offsets), `fetching` (the tasks).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharecons.spark.source import ShareGroupDataSource

__all__ = ["ShareGroupDataSource"]


def __getattr__(name: str) -> object:
    # Imported on first use: programs that only read a ledger need no Spark.
    if name != "ShareGroupDataSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sharecons.spark.source import ShareGroupDataSource

    return ShareGroupDataSource
