"""Validation of a worker's arguments; every error message names the argument."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from sharecons.config.validation import check_topics
from sharecons.copies.dead_letter_writer import DeadLetterQueue
from sharecons.errors import ConfigurationError
from sharecons.member.settings import MemberSettings
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.retry_topics import RetryTopic, RetryTopics

__all__ = [
    "check_consumed",
    "check_lock_time",
    "check_offset_reset",
    "check_retry",
    "check_retry_topics",
    "check_topics_differ",
    "dead_letter_queue",
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


def check_retry(retry: object) -> None:
    if retry is not None and not isinstance(retry, RetryPolicy):
        raise ConfigurationError(
            f"retry must be a RetryPolicy, not {retry!r}; use RetryPolicy("
            "max_attempts=5)"
        )


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


def dead_letter_queue(given: object) -> DeadLetterQueue | None:
    """Return the dead-letter queue of an argument, which can be a topic's name.

    Raises:
        ConfigurationError: it is of another type, or the name is not a topic's.
    """
    if isinstance(given, str):
        return DeadLetterQueue(given)
    if given is None or isinstance(given, DeadLetterQueue):
        return given
    raise ConfigurationError(
        "dead_letter must be a DeadLetterQueue, the name of a topic, or None, not "
        f"{given!r}; use DeadLetterQueue('orders.dead')"
    )


def check_retry_topics(topics: object) -> tuple[RetryTopic, ...]:
    """Return the retry topics as a tuple.

    Raises:
        ConfigurationError: it is not a sequence of `RetryTopic` objects.
    """
    if isinstance(topics, RetryTopic):
        raise ConfigurationError(
            f"retry_topics must be a sequence; write retry_topics=[{topics!r}]"
        )
    given = _as_tuple(topics)
    if given is None or not all(isinstance(each, RetryTopic) for each in given):
        raise ConfigurationError(
            "retry_topics must be a sequence of RetryTopic, not "
            f"{topics if given is None else list(given)!r}; use "
            "[RetryTopic('orders.retry', 60.0)]"
        )
    return given


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


def check_offset_reset(settings: MemberSettings, retry_topics: Collection[str]) -> None:
    """Check that the worker does not let its group read retry topics from their end.

    Raises:
        ConfigurationError: its `auto_offset_reset` is latest.
    """
    if retry_topics and settings.offset_reset.value == "latest":
        raise ConfigurationError(
            'auto_offset_reset="latest" cannot be combined with retry_topics: the '
            "group would never receive copies that are written to a retry topic before "
            'the group reads it; pass auto_offset_reset="earliest"'
        )


def _as_tuple(given: object) -> tuple[Any, ...] | None:
    """Return the elements of an iterable; None for others, strings and mappings."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        return None
    return tuple(given)
