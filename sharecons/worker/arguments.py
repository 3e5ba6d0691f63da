"""Validation of a worker's arguments; every error message names the argument."""

import inspect
from collections.abc import Iterable
from typing import Any, cast

from sharecons.config.callables import check_callback
from sharecons.config.validation import check_topics
from sharecons.errors import ConfigurationError
from sharecons.guard import function_name
from sharecons.worker.retry_topics import RetryTopics

__all__ = [
    "check_consumed",
    "check_lock_time",
    "check_on_outcome",
    "check_topics_differ",
]


def check_consumed(*topics: object) -> tuple[str, ...]:
    """Return the names of the topics of a handler.

    Raises:
        ConfigurationError: there is none, or a name is invalid.
    """
    if any(type(each).__name__ == "ShareConsumer" for each in topics):
        raise ConfigurationError(
            "topics must be names of topics, not a ShareConsumer: a worker makes its "
            "own member, with ShareWorker('orders', charge, group_id='billing')"
        )
    names = check_topics(cast("Any", topics))
    if not names:
        raise ConfigurationError(
            "topics must be names of topics, but there are none; write 'orders'"
        )
    return names


def check_lock_time(
    max_lock_time: float, timeout: float | None, topics: RetryTopics
) -> None:
    """Check that a record is held long enough for a call, and in a retry topic.

    A longer delay of a policy is no error: the record then waits elsewhere.

    Raises:
        ConfigurationError: one of them is longer than `max_lock_time`.
    """
    held = [("timeout is", timeout)]
    if topics:
        held.append(
            ("records of retry_topics are held for up to", topics.longest_delay)
        )
    for what, seconds in held:
        if seconds is not None and seconds > max_lock_time:
            raise ConfigurationError(
                f"{what} {seconds:g} s, but max_lock_time, for which a record is held "
                f"in all, is {max_lock_time:g} s: increase max_lock_time"
            )


def check_on_outcome(name: str, function: Any) -> Any:
    """Return None, or a plain function that can be called with one argument.

    Raises:
        ConfigurationError: it is anything else.
    """
    if function is None:
        return None
    if inspect.isclass(function):
        raise ConfigurationError(
            f"{name} is the class {function.__name__}; pass a function with one "
            "parameter, or an instance"
        )
    check_callback(name, function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return function  # written in C
    try:
        signature.bind(object())
    except TypeError as error:
        raise ConfigurationError(
            f"{name}: {function_name(function)}{signature} cannot be called with one "
            f"argument, an OutcomeEvent: {error}"
        ) from None
    return function


def check_topics_differ(
    consumed: Iterable[str], retry_topics: Iterable[str], dead_letters: Iterable[str]
) -> None:
    """Check that no topic has two purposes.

    Args:
        consumed: the topics with handlers.
        dead_letters: the topics of dead-letter queues.

    Raises:
        ConfigurationError: a topic occurs twice.
    """
    topics, retries = set(consumed), set(retry_topics)
    for name in sorted(topics & retries):
        raise ConfigurationError(
            f"the retry topic {name!r} is a topic that the worker consumes; "
            "name another topic: the worker consumes its retry topics by itself"
        )
    for name in sorted(topics.intersection(dead_letters)):
        raise ConfigurationError(
            f"the dead-letter topic {name!r} is a topic that the worker "
            "consumes, and would deliver its dead letters again; name another topic"
        )
    for name in sorted(retries.intersection(dead_letters)):
        raise ConfigurationError(
            f"{name!r} is the dead-letter topic and a retry topic; name another "
            "topic for one of them"
        )
