"""Print the records of a topic; Ctrl-C or SIGTERM leaves the group."""

import os

import anyio

from sharecons import ShareConsumer


async def main() -> None:
    async with ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092"),
        auto_offset_reset="earliest",
        handle_signals=True,
    ) as consumer:
        async for record in consumer:
            print(record.topic, record.offset, record.value, flush=True)


if __name__ == "__main__":
    anyio.run(main)
    print("closed")
