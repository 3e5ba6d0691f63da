"""Charge orders, which are JSON, through a payment service; needs httpx.

    cd examples
    export PAYMENTS_URL=https://payments.example/charges
    sharecons run order_processor:worker --grace 10
    sharecons dead-letters list orders.dead

A call that hangs is cancelled after CALL_TIMEOUT seconds, and tried again, as are
status 500 and lost connections. Orders that cannot succeed (invalid JSON, a card that
is declined) and orders that have failed 5 times end in "orders.dead". The service
charges an order once, because each call for it has the same Idempotency-Key.
"""

import json
import logging
import os
from typing import Any

import httpx

from sharecons import DeadLetter, Record, RetryPolicy, ShareWorker

PAYMENTS_URL = os.environ.get("PAYMENTS_URL", "http://localhost:8080/charges")
CALL_TIMEOUT = float(os.environ.get("CALL_TIMEOUT", "10"))
FIRST_DELAY = float(os.environ.get("FIRST_DELAY", "1"))

# httpx logs each request at INFO; `sharecons run` shows INFO.
logging.getLogger("httpx").setLevel(logging.WARNING)

# Connects with the first request. The worker's `timeout` limits the whole call.
client = httpx.AsyncClient(timeout=None)


worker = ShareWorker(
    group_id="order-processors",
    bootstrap_servers=os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092"),
    concurrency=20,
    timeout=CALL_TIMEOUT,
    retry=RetryPolicy(max_attempts=5, initial=FIRST_DELAY, maximum=60.0),
    create_topics=True,
    shutdown_grace=CALL_TIMEOUT,
)


# A value that is no JSON is a dead letter, and never reaches the handler.
@worker.handler("orders", value_deserializer=json.loads, dead_letter="orders.dead")
async def charge(record: Record[bytes, Any]) -> None:
    """Charge an order; any exception but DeadLetter is tried again."""
    order = record.value
    if not isinstance(order, dict) or not {"id", "amount"} <= order.keys():
        raise DeadLetter("an order needs an id and an amount")
    reply = await client.post(
        PAYMENTS_URL,
        json={"amount": order["amount"]},
        headers={"Idempotency-Key": str(order["id"])},
    )
    if reply.status_code == httpx.codes.PAYMENT_REQUIRED:
        raise DeadLetter(f"the card of order {order['id']} is declined")
    reply.raise_for_status()
