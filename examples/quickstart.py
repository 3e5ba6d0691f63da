"""Work off a topic as a queue; Ctrl-C ends it and leaves the rest to others."""

import os

import anyio

from sharecons import ShareConsumer


async def main() -> None:
    async with ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092"),
        auto_offset_reset="earliest",
    ) as consumer:
        async for record in consumer:
            print(record.topic, record.offset, record.value, flush=True)


if __name__ == "__main__":
    try:
        anyio.run(main)
    except KeyboardInterrupt:
        print("closed")
