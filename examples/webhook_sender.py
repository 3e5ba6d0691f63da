"""Send each record of a topic to a web hook; needs httpx.

    python examples/webhook_sender.py https://example.org/hook

Failures are tried again: after 1, 2, 4 … 60 s, or when the server requests it. If a
record would stall its partition while it waits, it moves to "webhooks.retry". Records
that the server rejects, or that failed 8 times, end in "webhooks.dead". The topics must
exist:

    sharecons dead-letters list webhooks.dead
"""

import argparse
import os

import anyio
import httpx

from sharecons import (
    DeadLetter,
    DeadLetterQueue,
    Record,
    Retry,
    RetryPolicy,
    RetryTopic,
    ShareWorker,
)

LONGEST_DELAY = 60.0
TRY_AGAIN = (408, 425, 429, 503)


class Sender:
    """Posts the records of a worker."""

    def __init__(self, client: httpx.AsyncClient, url: str, first_delay: float) -> None:
        self._client = client
        self._url = url
        self.worker: ShareWorker[bytes, bytes] = ShareWorker(
            "webhooks",
            self.send,
            group_id="webhook-senders",
            bootstrap_servers=os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092"),
            concurrency=50,
            retry=RetryPolicy(
                max_attempts=8, initial=first_delay, maximum=LONGEST_DELAY
            ),
            retry_topics=[RetryTopic("webhooks.retry", LONGEST_DELAY)],
            dead_letter=DeadLetterQueue("webhooks.dead"),
        )

    async def send(self, record: Record) -> None:
        """Post a record; the worker tries it again if httpx raises (timeout, 500)."""
        topic, partition, offset = self.worker.origin(record)[:3]
        # The same each time that this record is sent, so the server can ignore repeats.
        name = f"{topic}-{partition}-{offset}"
        reply = await self._client.post(
            self._url, content=record.value or b"", headers={"Idempotency-Key": name}
        )
        if reply.status_code in TRY_AGAIN:
            raise Retry(after=requested_delay(reply))
        if reply.is_client_error:
            raise DeadLetter(f"status {reply.status_code}: {reply.text[:200]}")
        reply.raise_for_status()
        print("sent", name, flush=True)


async def main(url: str, first_delay: float) -> None:
    async with httpx.AsyncClient(timeout=10) as client:
        await Sender(client, url, first_delay).worker.run()
    print("closed")


def requested_delay(reply: httpx.Response) -> float | None:
    """Return the seconds in Retry-After; None (the policy's delay) without one."""
    seconds = reply.headers.get("Retry-After", "")
    return min(float(seconds), LONGEST_DELAY) if seconds.isdecimal() else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Send records to a web hook.")
    parser.add_argument("url")
    parser.add_argument("--first-delay", type=float, default=1.0, metavar="SECONDS")
    options = parser.parse_args()
    anyio.run(main, options.url, options.first_delay)
