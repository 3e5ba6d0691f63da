"""Acknowledge each record explicitly; Ctrl-C or SIGTERM leaves the group."""

import os

import anyio

from sharecons import AcknowledgeResult, ShareConsumer


def valid(value: bytes | None) -> bool:
    return value is not None and value.startswith(b"job")


async def main() -> None:
    async with ShareConsumer(
        "orders",
        group_id="explicit-billing",
        bootstrap_servers=os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092"),
        acknowledgement="explicit",
        auto_offset_reset="earliest",
        on_acknowledged=report,
        handle_signals=True,
    ) as consumer:
        async for record in consumer:
            if not valid(record.value):
                record.reject()  # cannot be processed: archive it
            elif record.delivery_count == 1 and record.offset % 10 == 0:
                record.release(after=0.5)  # not now: deliver it again, to any member
            else:
                record.accept()


def report(results: list[AcknowledgeResult]) -> None:
    for result in results:
        what = result.type.name.lower()
        became = "failed" if result.error else "confirmed"
        where = f"{result.topic}-{result.partition}"
        print(where, f"{result.first_offset}..{result.last_offset}", what, became)


if __name__ == "__main__":
    anyio.run(main)
    print("closed")
