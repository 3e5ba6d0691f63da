"""A program that writes the records of a share group to Parquet.

    python -m sharecons.spark.pipeline --topic orders --group lake \\
        --schema "id BIGINT NOT NULL, amount DOUBLE" --into /data/orders

`--help` lists the options, and docs/spark.md describes how to run it on a cluster. It
writes these directories:

    rows/         valid records as typed rows, by day (or `--partition-by`) and batch
    quarantine/   rejected records: their bytes, their origin, and the reason
    runs/         one line per batch: counts, redeliveries, lag, latency
    ledger/, checkpoint/

Modules: `settings` is the command line; `session` and `run` start the query, `stats`
and `chart` show its batches, and `failures` explains its errors. `validation` divides
records by the result of `decoding`, which uses `framing`, `json_decoder`,
`avro_decoder`, `avro_schemas`, `converters` and `timestamps`; `errors` has the reason
for a rejected value, and `own_columns` the names of the added columns.
"""

__all__: list[str] = []
