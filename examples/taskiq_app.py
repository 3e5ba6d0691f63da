"""Web hooks as tasks of taskiq on a share group, with retries.

    taskiq worker --app-dir examples taskiq_app:broker
    python examples/taskiq_app.py https://example.org/hook ...

The first command runs workers; the second one sends a task for each argument.
"""

import asyncio
import os
import sys

from taskiq import SmartRetryMiddleware

from sharecons.taskiq import ShareGroupBroker

broker = ShareGroupBroker(
    "hooks",
    group_id="hook-senders",
    bootstrap_servers=os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092"),
).with_middlewares(SmartRetryMiddleware(default_retry_count=5, default_delay=1.0))

failed_once: set[str] = set()


@broker.task("send_hook", retry_on_error=True)
async def send_hook(url: str) -> None:
    # A server that fails at the first attempt.
    if url not in failed_once:
        failed_once.add(url)
        raise ConnectionError(f"{url} does not respond")
    print("delivered", url, flush=True)


async def main(urls: list[str]) -> None:
    await broker.startup()
    try:
        for url in urls:
            # The record's key; retries keep it.
            await send_hook.kicker().with_labels(sharecons_key=url).kiq(url)
            print("sent", url, flush=True)
    finally:
        await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
