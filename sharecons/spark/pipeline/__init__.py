"""A program that writes the records of a share group to Parquet or Delta.

    python -m sharecons.spark.pipeline --topic orders --group lake \\
        --schema "id BIGINT NOT NULL, amount DOUBLE" --into /data/orders

`--help` lists the options, and docs/spark-running.md describes how to run it on a
cluster. It writes these directories:

    rows/         valid records as typed rows, by day (or `--partition-by`)
    quarantine/   rejected records: their bytes, their origin, and the reason
    runs/         one line per batch: counts, reasons, lag, backlog, latency
    staging/, commits/, layout.json, ledger/, checkpoint/

Modules, in reading order:

- The program: `settings` is the command line; `program` runs it, `session` starts
  Spark, and `failures` explains errors. `run` runs the query, `requeue` decodes the
  quarantine again.
- Statistics: `stats` has a batch's, `measuring` counts them, `run_stats` keeps them
  for the table at the end. `run_files` reads `runs/`; `points` is what is drawn,
  `plots` draws it, `page` and `page_style` are the HTML. `page_command` makes a page of
  all runs, `live_page` one of the current run.
- Records to rows: `validation` divides records by the result of `decoding`, which uses
  `framing`, `json_decoder`, `avro_decoder`, `avro_schemas`, `converters` and
  `timestamps`; `errors` has the reason for a rejected value, and `own_columns` the
  names of the added columns.
- Writing: `batch_writer` stages, commits and publishes batches, with `commits` (the
  commit files), `layout` (what later runs cannot change) and `files`. `sinks` opens a
  directory; `tables`, `parquet_sink` and `delta_sink` publish to its tables.
"""

__all__: list[str] = []
