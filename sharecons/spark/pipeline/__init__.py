"""A data pipeline as a program: share group, valid rows, Parquet, quarantine, figures.

    python -m sharecons.spark.pipeline --topic orders --group lake \\
        --schema "id BIGINT NOT NULL, amount DOUBLE" --into /data/orders

`--help` says the rest, docs/spark.md how it runs on a cluster. What it leaves:

    rows/         valid rows, typed, by day (or `--partition-by`) and batch
    quarantine/   what was refused: the bytes, where they came from, and the reason
    runs/         one line for each batch: counts, redeliveries, lag, latency
    ledger/, checkpoint/
"""

__all__: list[str] = []
