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


async def run(worker: ShareWorker) -> None:
    try:
        await worker.run()
    except Exception:
        # Without this, the app would go on to take orders that it does not charge.
        log.exception("the worker has failed; the app ends")
        signal.raise_signal(signal.SIGTERM)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    # uvicorn handles signals, and then ends the lifespan.
    app.state.worker = worker = ShareWorker(
        "orders",
        charge,
        group_id="billing",
        bootstrap_servers=SERVERS,
        auto_offset_reset="earliest",
        dead_letter="orders.dead",
        create_topics=True,
        shutdown_grace=10,
        handle_signals=False,
    )
    app.state.producer = producer = Producer(SERVERS)
    async with anyio.create_task_group() as tasks, producer:
        tasks.start_soon(run, worker)
        yield
        worker.stop()  # the block ends when the orders at work are charged
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
