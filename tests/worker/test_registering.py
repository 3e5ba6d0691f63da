"""Registering the handlers of topics, and mistakes in it."""

from typing import Any

import pytest

from sharecons import (
    BatchHandler,
    Handler,
    Record,
    RetryTopic,
    ShareWorker,
)
from sharecons.errors import ConfigurationError, ConsumerStateError
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, new_worker

pytestmark = pytest.mark.anyio


def new(*arguments: Any, **options: Any) -> ShareWorker[Any, Any]:
    return ShareWorker(*arguments, group_id="billing", **options)


async def charge(record: Record[Any, Any]) -> None:
    """Do nothing: a handler."""


async def refund(record: Record[Any, Any]) -> None:
    """Do nothing: another handler."""


async def test_decorator_returns_the_function_unchanged() -> None:
    worker = new()

    assert charge is worker.handler("orders", "orders-eu")(charge)
    batch = BatchHandler(charge)  # type: ignore[arg-type]
    assert batch is worker.handler(["refunds", "refunds-eu"])(batch)

    subscribed = ("orders", "orders-eu", "refunds", "refunds-eu")
    assert subscribed == worker.subscription


async def test_handler_object_overrides_the_worker_and_none_means_without() -> None:
    worker = new(
        {"orders": charge, "refunds": Handler(refund, dead_letter=None)},
        dead_letter="dead",
    )

    assert ("dead",) == worker.dead_letter_topics
    only = new({"refunds": Handler(refund, dead_letter=None)}, dead_letter="dead")
    assert () == only.dead_letter_topics


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: new({"orders": charge}, refund),
            "handler cannot be given with a mapping",
        ),
        (lambda: new({}), "topics must be a mapping of handlers by topic, but it is"),
        (lambda: new({"": charge}), "topics must be non-empty topic names, not ''"),
        (lambda: new({5: charge}), "topics must be non-empty topic names, not 5"),
        (lambda: new({"orders": 5}), "handler must be a function with a record"),
        (lambda: new("orders"), "handler must be given with topics (orders)"),
        (lambda: new(None, charge), "topics must be given with a handler"),
        (lambda: new([], charge), "topics must be names of topics, but there are none"),
        (
            lambda: new(["orders", "orders"], charge),
            "topics contain duplicates: orders",
        ),
        (
            lambda: new({"orders": charge, "dead": refund}, dead_letter="dead"),
            "the dead-letter topic 'dead' is a topic that the worker consumes, and "
            "would deliver its dead letters again; name another topic",
        ),
        (
            lambda: new({"orders": Handler(charge, dead_letter="b"), "b": refund}),
            "the dead-letter topic 'b' is a topic that the worker consumes",
        ),
        (
            lambda: new(
                {
                    "orders": Handler(charge, retry_topics=[RetryTopic("b", 60.0)]),
                    "b": refund,
                }
            ),
            "the retry topic 'b' is a topic that the worker consumes; name another",
        ),
        (
            lambda: new(
                {
                    "orders": Handler(charge, retry_topics=[RetryTopic("r", 72.0)]),
                    "b": Handler(refund, dead_letter="r"),
                }
            ),
            "'r' is the dead-letter topic and a retry topic; name another topic for "
            "one of them",
        ),
        (
            lambda: new(
                {"b": Handler(charge, retry_topics=[RetryTopic("r", 72.0)])},
                auto_offset_reset="latest",
            ),
            'auto_offset_reset="latest" cannot be combined with retry_topics',
        ),
        (lambda: Handler(charge, concurrency=0), "concurrency must be between 1"),
        (lambda: Handler(charge, timeout="1"), "timeout must be a number"),  # type: ignore[arg-type]
        (lambda: Handler(charge, key_order=1), "key_order must be True or False"),  # type: ignore[arg-type]
        (lambda: Handler(charge, dead_leter="x"), "did you mean dead_letter?"),  # type: ignore[call-arg]
        (lambda: Handler(charge, hooks=[]), "Handler has no argument hooks"),  # type: ignore[call-arg]
        (lambda: Handler(5), "handler must be a function"),  # type: ignore[arg-type]
        (lambda: new().handler(charge), "write @worker.handler('orders')"),
        (lambda: new().handler(), "topics must be names of topics, but there are none"),
        (lambda: new().handler("a", timeout=0), "timeout must be between"),
        (lambda: new().handler("a", dead_letters="b"), "did you mean dead_letter?"),
        (lambda: new().handler("a")(5), "handler must be a function with a record"),
        (
            lambda: new().handler("a", max_records=2)(BatchHandler(charge)),  # type: ignore[arg-type]
            "max_records and max_wait are given twice",
        ),
    ],
)
async def test_mistake_is_an_error_that_says_what_to_do(
    make: Any, message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()

    assert message in str(caught.value)


async def test_second_handler_of_a_topic_is_rejected_and_the_first_stays() -> None:
    worker = new({"orders": charge})

    with pytest.raises(ConfigurationError, match="'orders' has two handlers, charge a"):
        worker.handler("refunds", "orders")(refund)

    assert ("orders",) == worker.subscription


async def test_worker_without_a_handler_does_not_start_and_can_get_one(
    broker: MemoryBroker,
) -> None:
    worker = new_worker(broker)
    with pytest.raises(ConfigurationError, match="the worker has no handler"):
        await worker.run()
    with pytest.raises(ConfigurationError, match="the worker has no handler"):
        async with worker:
            pass

    handled = Handled()
    worker.handler("orders")(handled)
    broker.produce("orders", [b"1"])
    async with worker:
        await until(lambda: handled.calls == [b"1"])


async def test_handler_that_is_registered_after_the_start_is_an_error(
    broker: MemoryBroker,
) -> None:
    worker = new_worker(broker, "orders", charge)
    async with worker:
        with pytest.raises(ConsumerStateError, match="refund of refunds is too late"):
            worker.handler("refunds")(refund)
