"""Makes the worker from the target and the options."""

import argparse
from typing import Any, Final

from sharecons.cli import client_options
from sharecons.cli.run.arguments import given_flags, given_options
from sharecons.cli.run.target import import_target
from sharecons.config.not_given import NOT_GIVEN, NotGiven
from sharecons.errors import ConfigurationError
from sharecons.worker.health_policy import HealthPolicy
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.retry_topics import RetryTopic
from sharecons.worker.settings import WorkerSettings
from sharecons.worker.share_worker import ShareWorker

__all__ = ["build_worker"]

Worker = ShareWorker[Any, Any]

NONE: Final = "none"


def build_worker(options: argparse.Namespace, member_id: str | None) -> Worker:
    """Import the target, and return its worker, or one that calls it.

    `member_id` is the name of this process in the group; None keeps it unchanged.

    Raises:
        ConfigurationError: the target or an option is invalid.
    """
    target = import_target(options.target)
    if isinstance(target, ShareWorker):
        if given := given_flags(options):
            raise ConfigurationError(
                f"{options.target} is a ShareWorker, which has its own settings; "
                f"{', '.join(given)} cannot change them"
            )
        if member_id is not None:
            # Processes that import one module would have one member id otherwise, or a
            # new one after each restart.
            target.member_id = member_id
        return target
    required = {"--topic": options.topics, "--group": options.group}
    if missing := [flag for flag, value in required.items() if not value]:
        raise ConfigurationError(
            f"{' and '.join(missing)} must be given with a handler ({options.target})"
        )
    settings = client_options.load_settings(options)
    of_handler = given_options(options, HandlerSettings)
    if topics := of_handler.get("retry_topics"):
        of_handler["retry_topics"] = [RetryTopic(*each) for each in topics]
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
        handle_signals=False,
        retry=RetryPolicy(**given_options(options, RetryPolicy)),
        health=HealthPolicy(**given_options(options, HealthPolicy)),
        **of_handler,
        **given_options(options, WorkerSettings),
    )


def _offset_reset(given: str | None) -> str | None | NotGiven:
    """Return the worker's argument; "none" leaves the group unchanged."""
    if given is None:
        return NOT_GIVEN
    return None if given == NONE else given
