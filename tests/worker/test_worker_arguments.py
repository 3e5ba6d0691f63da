"""Arguments of a worker with a wrong type or a conflict, before anything is started."""

from functools import partial
from typing import Any

import anyio
import pytest

from sharecons import (
    DeadLetterQueue,
    RetryPolicy,
    RetryTopic,
    ShareConsumer,
    ShareWorker,
    load_properties,
)
from sharecons.errors import ConfigurationError
from tests.worker.working import Handled

PROPERTIES = {"bootstrap.servers": "a:1", "group.id": "billing"}
RETRY = RetryTopic("orders.retry", 60.0)


def worker(handler: Any = None, **options: Any) -> ShareWorker[Any, Any]:
    return ShareWorker(
        "orders",
        handler or Handled(),
        group_id="billing",
        **options,
    )


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
        ({"max_held_bytes": 1.5}, "max_held_bytes must be a whole number, not 1.5"),
        ({"max_lock_time": "1h"}, "max_lock_time must be a number, not '1h'"),
        ({"shutdown_grace": None}, "shutdown_grace must be a number, not None"),
        ({"collect_metrics": 1}, "collect_metrics must be True or False, not 1"),
        ({"health": {"stuck_after": 1.0}}, "health must be a HealthPolicy, not {'st"),
        ({"concurrency": 0}, "concurrency must be between 1 and"),
        ({"max_held_bytes": 0}, "max_held_bytes must be between 1 and"),
        ({"max_lock_time": -1}, "max_lock_time must be between"),
        ({"shutdown_grace": -1}, "shutdown_grace must be between 0.0"),
        ({"on_deserialization_error": "accept"}, "on_deserialization_error must be o"),
        ({"timeout": 20.0, "max_lock_time": 10.0}, "timeout is 20 s, but max_lock_ti"),
        ({"retry_topics": [RETRY], "max_lock_time": 80.0}, "held for up to 90 s, but"),
        ({"retry_topics": [RetryTopic("r", 0.5)]}, "can wait 72 s, but the retry top"),
        ({"retry_topics": [RETRY, RETRY]}, "different topics and different"),
        ({"retry_topics": [RETRY, RetryTopic("r", 60.0)]}, "different topics and dif"),
        ({"dead_letter": "orders"}, "'orders' is a topic that the worker consumes, a"),
        ({"max_wait": "1"}, "max_wait must be a number"),
        ({"on_acknowledged": anyio.sleep}, "on_acknowledged must be a plain"),
    ],
)
def test_invalid_argument_is_rejected_with_its_name(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        worker(**options)

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


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


@pytest.mark.parametrize("topics", [None, 5, object(), [5], "", [], [""]])
def test_topics_of_a_wrong_type_are_rejected(topics: Any) -> None:
    with pytest.raises(ConfigurationError, match="^topics must be"):
        ShareWorker(topics, Handled(), group_id="billing")


def test_consumer_in_place_of_topics_is_rejected_with_the_call() -> None:
    consumer: Any = ShareConsumer("orders", group_id="billing")

    with pytest.raises(ConfigurationError, match="makes its own member.*group_id="):
        ShareWorker(consumer, Handled(), group_id="billing")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"bootstrap_server": "a:1"},
            "ShareWorker has no argument bootstrap_server; did you mean "
            "bootstrap_servers?",
        ),
        ({"max_attempts": 3}, "max_attempts is an argument of RetryPolicy: pass retry"),
        ({"colour": 3}, "ShareWorker has no argument colour"),
        ({"acknowledgement": "explicit"}, "acknowledgement has no effect in a worker"),
        ({"dead_letters": "x"}, "no argument dead_letters; did you mean dead_letter?"),
    ],
)
def test_unknown_argument_is_rejected_with_the_nearest_name(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        worker(**options)

    assert message in str(caught.value)


def test_member_id_can_be_set_until_the_worker_starts() -> None:
    made = worker(member_id="pod-1")
    first = made.member_id

    made.member_id = "pod-2"

    assert first != made.member_id
    made.member_id = "pod-1"
    assert first == made.member_id


def test_name_of_a_topic_is_accepted_as_the_dead_letter_queue() -> None:
    created = worker(dead_letter="orders.dead")

    assert ("orders.dead",) == created.dead_letter_topics
    assert ("orders",) == created.subscription


def test_coroutine_functions_of_all_kinds_are_accepted_as_middleware() -> None:
    worker(middleware=[trace, Transactions(), partial(trace), Transactions().__call__])
    worker(middleware=(each for each in [trace]))
    worker(middleware=[])
    worker(middleware=[trace], on_outcome=print)


def test_retry_topics_from_a_generator_are_accepted() -> None:
    created = worker(retry_topics=(each for each in [RETRY]))

    assert ("orders", "orders.retry") == created.subscription


def test_properties_are_arguments_of_a_worker() -> None:
    created = ShareWorker("orders", Handled(), **load_properties(PROPERTIES))

    assert ("billing", ("orders",)) == (created.group_id, created.subscription)


def test_property_of_the_acknowledgement_mode_is_an_error() -> None:
    properties = {**PROPERTIES, "share.acknowledgement.mode": "explicit"}
    with pytest.raises(ConfigurationError, match=r"share\.acknowledgement\.mode"):
        ShareWorker("orders", Handled(), **load_properties(properties))
