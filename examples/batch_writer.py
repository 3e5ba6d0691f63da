"""Write records into a database in batches, each record once.

    python examples/batch_writer.py orders.db                       # SQLite
    python examples/batch_writer.py postgresql://localhost/orders   # needs psycopg

The records are accepted after the transaction is committed. If the process dies between
the two, they are delivered again: their keys in the table show what was written.
"""

import os
import sqlite3
import sys
from contextlib import closing
from typing import Any

import anyio

from sharecons import (
    BatchHandler,
    DeadLetter,
    DeadLetterQueue,
    HandlerBatch,
    ShareWorker,
)

CREATE = """
CREATE TABLE IF NOT EXISTS orders (
    topic TEXT, partition INTEGER, source_offset BIGINT, value BYTEA,
    PRIMARY KEY (topic, partition, source_offset)
)
"""
INSERT = "INSERT INTO orders VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"


class Database:
    """A database of SQLite or PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_postgres = url.startswith(("postgresql:", "postgres:"))

    def connect(self) -> Any:
        if self._is_postgres:
            import psycopg

            return psycopg.connect(self._url)
        return sqlite3.connect(self._url)

    def create_table(self) -> None:
        with closing(self.connect()) as connection:
            connection.execute(CREATE)
            connection.commit()

    def insert(self, rows: list[tuple[object, ...]]) -> int:
        """Insert rows in one transaction; return how many were not there."""
        statement = INSERT.replace("?", "%s") if self._is_postgres else INSERT
        # Closing a connection without a commit rolls back.
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.executemany(statement, rows)
            connection.commit()
            new: int = cursor.rowcount
            return new


class Writer:
    """Writes the batches of a worker, in threads: the databases' drivers block."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.worker: ShareWorker[bytes, bytes] = ShareWorker(
            "orders",
            BatchHandler(self.write, max_records=500, max_wait=0.2),
            group_id="order-writers",
            bootstrap_servers=os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092"),
            concurrency=2,
            dead_letter=DeadLetterQueue("orders.dead"),
        )

    def write(self, batch: HandlerBatch[bytes, bytes]) -> None:
        """Write a batch; an exception, for example a lost connection, repeats it."""
        rows: list[tuple[object, ...]] = []
        for record in batch:
            if record.value is None:
                batch.fail(record, DeadLetter("an order without a value"))
                continue
            topic, partition, offset = self.worker.origin(record)[:3]
            rows.append((topic, partition, offset, record.value))
        new = self._database.insert(rows) if rows else 0
        print(f"wrote {new} of {len(rows)}", flush=True)


async def main(url: str) -> None:
    database = Database(url)
    database.create_table()
    await Writer(database).worker.run()
    print("closed")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else "orders.db")
