"""A Spark data source for share groups: `spark.readStream.format("sharegroup")`.

Spark finds it by itself, by the module `pyspark_sharecons`. The user's manual is
docs/spark.md. The extra `spark` installs pyspark and pyarrow. The modules, in reading
order:

- Spark's calls: `source`, `schema`, `options`, `refused_options`,
  `ledger_options`, `units`, `hadoop_conf`.
- Queries: `stream`, `batch`, `planning` (batches and tasks); `shared_query`,
  `query_link` (several readers of one query); `errors`.
- The member: `factory`, `driver`, `driver_tasks`, `acquirer`, `acquirer_stats`,
  `ahead_limit`; `watch`, `topics`, `group_lag` (the state of topics and group).
- The acquired offsets: `ledger`, `loads`; `ledger_store`, `store`,
  `history`, `entries` (their files); `storage`, `local_storage`, `remote_storage`,
  `load_lock`.
- Files that the exporter reads: `finished_mark`, `backlog`.
- Tasks: `tasks`, `pickling`, `fetching`, `fetch_thread`, `arrow`.
- Outcomes: `outcomes`, for `foreachBatch`.

`pipeline` is a program that uses the source.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharecons.spark.source import ShareGroupDataSource

__all__ = ["ShareGroupDataSource"]
__dir__ = __all__.copy

if not TYPE_CHECKING:  # or type checkers would accept any name

    def __getattr__(name: str) -> object:
        # Imported on first use: programs that only read a ledger need no Spark.
        if name != "ShareGroupDataSource":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from sharecons.spark.source import ShareGroupDataSource

        return ShareGroupDataSource
