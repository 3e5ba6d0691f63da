"""Makes the worker from the target and the options."""

import argparse
from typing import Any, Final

from sharecons.cli import client_options
from sharecons.cli.run.arguments import WORKER_OPTIONS
from sharecons.cli.run.target import import_target
from sharecons.config.not_given import NOT_GIVEN, NotGiven
from sharecons.copies.dead_letter_writer import DeadLetterQueue
from sharecons.errors import ConfigurationError
from sharecons.worker.health_policy import HealthPolicy
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.retry_topics import RetryTopic
from sharecons.worker.share_worker import ShareWorker

__all__ = ["build_worker"]

Worker = ShareWorker[Any, Any]

NONE: Final = "none"

FLAGS: Final = {
    "topics": "--topic",
    "ignored": "--ignore-condition",
    "retry_topics": "--retry-topic",
    "bootstrap_servers": "--bootstrap-server",
    "command_properties": "--command-property",
}


def build_worker(options: argparse.Namespace, member_id: str | None) -> Worker:
    """Import the target, and return its worker, or one that calls it.

    `member_id` is the name of this process in the group; None keeps it unchanged.

    Raises:
        ConfigurationError: the target or an option is invalid.
    """
    target = import_target(options.target)
    if isinstance(target, ShareWorker):
        given = [_flag(name) for name in WORKER_OPTIONS if getattr(options, name)]
        if given:
            raise ConfigurationError(
                f"{options.target} is a ShareWorker, which has its own settings; "
                f"{', '.join(given)} cannot change them"
            )
        if member_id is not None:
            # Processes that import one module would have one member id otherwise, or a
            # new one after each restart.
            target.member_id = member_id
        return target
    missing = [
        _flag(name) for name in ("topics", "group") if not getattr(options, name)
    ]
    if missing:
        raise ConfigurationError(
            f"{' and '.join(missing)} must be given with a handler ({options.target})"
        )
    settings = client_options.load_settings(options)
    return ShareWorker(
        options.topics,
        target,
        group_id=options.group,
        bootstrap_servers=settings.bootstrap_servers,
        client_id=settings.client_id,
        security=settings.security,
        connect_timeout=settings.timeout,
        request_timeout=settings.timeout,
        auto_offset_reset=_offset_reset(options.auto_offset_reset),
        member_id=member_id,
        retry=RetryPolicy(
            **_given(
                max_attempts=options.max_attempts,
                initial=_initial(options),
                maximum=options.retry_maximum,
            )
        ),
        retry_topics=[RetryTopic(*each) for each in options.retry_topics],
        dead_letter=(
            None
            if options.dead_letter is None
            else DeadLetterQueue(options.dead_letter)
        ),
        create_topics=options.create_topics,
        key_order=options.key_order,
        shutdown_grace=options.grace,
        handle_signals=False,
        health=HealthPolicy(
            ignored=options.ignored,
            **_given(
                stuck_after=options.stuck_after,
                window_held_after=options.window_held_after,
                liveness=options.liveness or None,
            ),
        ),
        **_given(
            concurrency=options.concurrency,
            timeout=options.handler_timeout,
            max_lock_time=options.max_lock_time,
        ),
    )


def _offset_reset(given: str | None) -> str | None | NotGiven:
    """Return the worker's argument; "none" leaves the group unchanged."""
    if given is None:
        return NOT_GIVEN
    return None if given == NONE else given


def _initial(options: argparse.Namespace) -> float | None:
    """Return the first delay: not above the maximum, if only that is given."""
    initial: float | None = options.retry_initial
    maximum: float | None = options.retry_maximum
    if initial is None and maximum is not None:
        return min(RetryPolicy().initial, maximum)
    return initial


def _given(**values: Any) -> dict[str, Any]:
    """Return the values that are not None: others keep the worker's defaults."""
    return {name: value for name, value in values.items() if value is not None}


def _flag(name: str) -> str:
    return FLAGS.get(name, f"--{name.replace('_', '-')}")
