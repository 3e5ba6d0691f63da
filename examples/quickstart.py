"""Print the records of a topic; Ctrl-C or SIGTERM leaves the group."""

import os
import signal

import anyio

from sharecons import ShareConsumer


async def main() -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_on_signal, tasks.cancel_scope)
        async with ShareConsumer(
            "orders",
            group_id="billing",
            bootstrap_servers=os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092"),
            auto_offset_reset="earliest",
        ) as consumer:
            async for record in consumer:
                print(record.topic, record.offset, record.value, flush=True)


async def cancel_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


if __name__ == "__main__":
    anyio.run(main)
    print("closed")
