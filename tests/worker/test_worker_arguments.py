"""Arguments of a worker with a wrong type or a conflict, before anything is started."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest

from sharecons import (
    BatchHandler,
    DeadLetterQueue,
    RetryPolicy,
    RetryTopic,
    ShareConsumer,
    ShareWorker,
)
from sharecons.errors import ConfigurationError
from tests.worker.working import Handled

RETRY = RetryTopic("orders.retry", 60.0)


def worker(handler: Any = None, **options: Any) -> ShareWorker[Any, Any]:
    consumer = ShareConsumer("orders", group_id="billing")
    return ShareWorker(consumer, handler or Handled(), **options)


async def trace(attempt: Any, call_next: Any) -> None:
    await call_next()


def plain(attempt: Any, call_next: Any) -> None:
    pass


async def yields(attempt: Any, call_next: Any) -> Any:
    yield


async def one_parameter(attempt: Any) -> None:
    pass


class Transactions:
    async def __call__(self, attempt: Any, call_next: Any) -> None:
        await call_next()


async def report(event: Any) -> None:
    pass


def generate(event: Any) -> Any:
    yield


def two_parameters(record: Any, outcome: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retry": 5}, "retry must be a RetryPolicy, not 5; use RetryPolicy(max_att"),
        ({"retry": "5"}, "retry must be a RetryPolicy, not '5'"),
        ({"retry": RetryPolicy}, "retry must be a RetryPolicy, not <class"),
        ({"retry_topics": "x"}, "retry_topics must be a sequence of RetryTopic"),
        ({"retry_topics": ["x"]}, "retry_topics must be a sequence of RetryTopic"),
        ({"retry_topics": RETRY}, "write retry_topics=[RetryTopic("),
        ({"retry_topics": None}, "retry_topics must be a sequence of RetryTopic"),
        ({"retry_topics": 5}, "retry_topics must be a sequence of RetryTopic"),
        ({"dead_letter": 5}, "dead_letter must be a DeadLetterQueue, the name of a"),
        ({"dead_letter": b"x"}, "dead_letter must be a DeadLetterQueue, the name of a"),
        ({"dead_letter": RETRY}, "dead_letter must be a DeadLetterQueue, the name of"),
        ({"dead_letter": "a b"}, "dead_letter: topic name 'a b' can contain only"),
        ({"dead_letter": ""}, "dead_letter: topic name '' can contain only"),
        ({"middleware": 5}, "middleware must be a sequence of coroutine functions, no"),
        ({"middleware": None}, "not None; write middleware=[...]"),
        ({"middleware": "x"}, "not 'x'; write middleware=[...]"),
        ({"middleware": {}}, "not {}; write middleware=[...]"),
        ({"middleware": trace}, "; write middleware=[trace]"),
        ({"middleware": Transactions()}, "object at 0x"),
        ({"middleware": [5]}, "middleware[0] must be a coroutine function, `async def"),
        ({"middleware": [trace, Transactions]}, "middleware[1] is the class Transac"),
        ({"middleware": [plain]}, "middleware[0]: plain is a plain function, and must"),
        ({"middleware": [yields]}, "yields contains `yield`, so calling it runs none"),
        ({"middleware": [one_parameter]}, "cannot be called with two arguments, the"),
        ({"on_outcome": 5}, "on_outcome must be callable or None, not 5"),
        ({"on_outcome": report}, "on_outcome must be a plain function: <function"),
        ({"on_outcome": generate}, "is a generator function"),
        ({"on_outcome": Handled}, "on_outcome is the class Handled; pass a function"),
        ({"on_outcome": two_parameters}, "cannot be called with one argument, an Outc"),
        ({"on_deserialization_error": []}, "on_deserialization_error must be one of"),
        ({"on_deserialization_error": None}, "on_deserialization_error must be one of"),
        ({"key_order": "yes"}, "key_order must be True or False, not 'yes'"),
        ({"key_order": None}, "key_order must be True or False, not None"),
        ({"handle_signals": 0}, "handle_signals must be True or False, not 0"),
        ({"stop_on_error": "no"}, "stop_on_error must be True or False, not 'no'"),
        ({"concurrency": "5"}, "concurrency must be a whole number, not '5'"),
        ({"concurrency": None}, "concurrency must be a whole number, not None"),
        ({"max_bytes": 1.5}, "max_bytes must be a whole number, not 1.5"),
        ({"max_lock_time": "1h"}, "max_lock_time must be a number, not '1h'"),
        ({"shutdown_grace": None}, "shutdown_grace must be a number, not None"),
    ],
)
def test_argument_of_a_wrong_type_is_rejected_with_its_name(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        worker(**options)

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def generate(record: Any) -> Iterator[None]:
    yield


async def generate_asynchronously(record: Any) -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (5, "handler must be a function with a record as its argument"),
        ("handle", "handler must be a function with a record as its argument"),
        (generate, "contains `yield`"),
        (generate_asynchronously, "contains `yield`"),
        (Handled, "is a class: pass an instance of it"),
    ],
)
def test_handler_that_runs_nothing_is_rejected(handler: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        worker(handler)
    with pytest.raises(ConfigurationError, match=message.replace("a record", ".*")):
        BatchHandler(handler)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_records": "5"}, "max_records must be a whole number"),
        ({"max_wait": None}, "max_wait must be a number"),
    ],
)
def test_argument_of_a_batch_handler_of_a_wrong_type_is_rejected(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        BatchHandler(Handled(), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_attempts": "5"}, "max_attempts must be a whole number"),
        ({"initial": "1s"}, "initial must be a number"),
        ({"by_exception": [ValueError]}, "by_exception must be a mapping"),
        ({"by_exception": None}, "by_exception must be a mapping"),
        ({"by_exception": {"ValueError": RetryPolicy()}}, "exception classes as keys"),
        ({"by_exception": {ValueError: 5}}, r"by_exception\[ValueError\] must be"),
    ],
)
def test_argument_of_a_retry_policy_of_a_wrong_type_is_rejected(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        RetryPolicy(**options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RetryTopic(5, 1.0), "retry_topics must be a str, not 5"),  # type: ignore[arg-type]
        (lambda: RetryTopic("x", "1"), "RetryTopic.delay must be a number"),  # type: ignore[arg-type]
        (lambda: DeadLetterQueue(5), "dead_letter must be a str, not 5"),  # type: ignore[arg-type]
    ],
)
def test_topic_of_a_wrong_type_is_rejected(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


@pytest.mark.parametrize("consumer", [None, "orders", ShareConsumer, object()])
def test_consumer_of_a_wrong_type_is_rejected(consumer: Any) -> None:
    with pytest.raises(ConfigurationError, match="^consumer must be a ShareConsumer"):
        ShareWorker(consumer, Handled())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"dead_letter": "orders"},
            "the dead-letter topic 'orders' is a topic that the worker consumes, and "
            "would deliver its dead letters again; name another topic",
        ),
        (
            {"dead_letter": "orders.retry", "retry_topics": [RETRY]},
            "'orders.retry' is the dead-letter topic and a retry topic; name another "
            "topic for one of them",
        ),
        (
            {"retry_topics": [RetryTopic("orders", 60.0)]},
            "the retry topic 'orders' is a topic that the consumer subscribes to; name "
            "another topic",
        ),
    ],
)
def test_topic_with_two_purposes_is_rejected_in_one_sentence(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        worker(**options)

    assert message in str(caught.value)


def test_consumer_is_free_after_its_worker_was_rejected() -> None:
    consumer = ShareConsumer("orders", group_id="billing")
    with pytest.raises(ConfigurationError):
        ShareWorker(consumer, Handled(), dead_letter="orders")

    ShareWorker(consumer, Handled(), dead_letter="orders.dead")

    assert ("orders",) == consumer.subscription


def test_name_of_a_topic_is_accepted_as_the_dead_letter_queue() -> None:
    created = worker(dead_letter="orders.dead")

    (route,) = created._options.routes.routes
    assert DeadLetterQueue("orders.dead") == route.dead_letter


def test_coroutine_functions_of_all_kinds_are_accepted_as_middleware() -> None:
    worker(middleware=[trace, Transactions(), partial(trace), Transactions().__call__])
    worker(middleware=(each for each in [trace]))
    worker(middleware=[])
    worker(middleware=[trace], on_outcome=print)


def test_retry_topics_from_a_generator_are_accepted() -> None:
    created = worker(retry_topics=(each for each in [RETRY]))

    assert ("orders", "orders.retry") == created.consumer.subscription
