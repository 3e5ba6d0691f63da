"""A FastAPI app that takes orders, and charges them in the background.

    uvicorn --app-dir examples fastapi_worker:app

    curl -X POST localhost:8000/orders/tea      # writes a record to the topic "orders"
    curl localhost:8000/health                  # 503 while the worker is not connected

Processes of this app are members of one share group: each order is charged by one. At
SIGTERM uvicorn finishes its requests, and then the worker its orders. Use /health for
readiness, not for liveness: starting this app again does not repair Kafka.
"""

import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from fastapi import FastAPI, Request, Response

from sharecons import Producer, Record, ShareWorker

# uvicorn configures its own loggers only.
logging.basicConfig(
    level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
)
log = logging.getLogger(__name__)

SERVERS = os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092")


async def charge(record: Record) -> None:
    await anyio.sleep(0.01)
    print("charged", (record.value or b"").decode(), flush=True)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    worker = ShareWorker(
        "orders",
        charge,
        group_id="billing",
        bootstrap_servers=SERVERS,
        dead_letter="orders.dead",
        create_topics=True,
        shutdown_grace=10,
        # uvicorn handles signals, and then ends the lifespan.
        handle_signals=False,
    )
    try:
        async with worker, Producer(bootstrap_servers=SERVERS) as producer:
            app.state.worker, app.state.producer = worker, producer
            yield
    except Exception:
        # Without this, the app would go on to take orders that it does not charge.
        log.exception("the worker has failed; the app ends")
        signal.raise_signal(signal.SIGTERM)
    print("closed", flush=True)


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{order}", status_code=202)
async def add_order(order: str, request: Request) -> dict[str, int]:
    sent = await request.app.state.producer.send("orders", order.encode())
    return {"partition": sent.partition, "offset": sent.offset}


@app.get("/health")
async def health(request: Request, response: Response) -> dict[str, bool]:
    connected = request.app.state.worker.connected
    response.status_code = 200 if connected else 503
    return {"connected": connected}
