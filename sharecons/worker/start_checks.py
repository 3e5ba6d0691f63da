"""Checks before a worker joins its group: the group's config, and topics for copies.

A worker that cannot write the copies of its failed records would hold them until its
partitions stall, and lose records that a retry topic is not read for. So this is an
error before the first record is taken. If the brokers do not respond to a check, the
worker goes on with a warning: the same can happen at any later time.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import anyio

from sharecons.copies.topic_configs import (
    CONFIGS,
    ConfigProblem,
    CopyTopic,
    SourceTopic,
    alter_command,
    find_problems,
    replicas_of,
)
from sharecons.errors import BrokerError, ConfigurationError, ConnectionFailedError
from sharecons.log import get_logger
from sharecons.member.group_setup import (
    OFFSET_RESET,
    GroupConfigs,
    configure_command,
)
from sharecons.member.settings import MemberSettings
from sharecons.net.admin_executor import AdminExecutor
from sharecons.net.broker_pool import BrokerPool, Deadline
from sharecons.net.topics import create_topic, describe_configs, describe_topics
from sharecons.protocol.admin.models import Topic
from sharecons.protocol.admin.requests import CreateTopic, ResourceKind
from sharecons.protocol.admin.results import Results
from sharecons.worker.copy_topics import (
    copy_topics_of,
    create_command,
    creation_of,
    is_missing,
    missing_error,
    problem_error,
    rights_error,
)
from sharecons.worker.routes import Routes

__all__ = ["StartChecks"]

PROPAGATION: Final = 2.0
"""Seconds for which a missing topic is looked up again: a broker learns of a new topic
a moment after it was created."""
CREATED: Final = 10.0
"""Seconds to wait for topics that this worker has created."""
PAUSE: Final = 0.25


class StartChecks:
    """Checks the group and the topics of a worker; creates topics if wanted.

    Args:
        create_topics: create missing topics instead of raising an error.
    """

    def __init__(
        self,
        settings: MemberSettings,
        brokers: BrokerPool,
        routes: Routes,
        *,
        create_topics: bool,
    ) -> None:
        self._settings = settings
        self._group = settings.fetch.group_id
        self._brokers = brokers
        self._has_retry_topics = bool(routes.retry_topics)
        self._copies = copy_topics_of(routes)
        self._sources = tuple(routes.by_topic)
        self._creates_topics = create_topics
        self._servers = ",".join(map(str, settings.cluster.bootstrap))
        self._unreadable: dict[str, str] = {}
        self._log = get_logger(__name__, group=self._group)

    async def run(self, configs: GroupConfigs) -> None:
        """Check everything.

        Raises:
            ConfigurationError: a config of the group or of a topic would lose records.
            BrokerError: a topic does not exist, or cannot be created.
            AuthorizationError: this client is not allowed to use a topic.
        """
        self._check_offset_reset(configs.offset_reset)
        if not self._copies:
            return
        try:
            await self._check_topics(
                AdminExecutor(self._brokers, Deadline(self._settings.request_timeout))
            )
        except ConnectionFailedError as error:
            self._log.warning(
                "retry topics and dead-letter topic not checked: no response; the "
                "worker goes on. Check that they exist",
                topics=[topic.name for topic in self._copies],
                error=str(error),
            )

    # The group.

    def _check_offset_reset(self, value: str | None) -> None:
        group = self._group
        command = configure_command(group, "earliest")
        if value is None and (
            self._has_retry_topics or self._settings.auto_offset_reset.is_default
        ):
            self._log.warning(
                f"{OFFSET_RESET} of the group cannot be read. If it is latest, records "
                "that are in a topic before the group reads it are never delivered, "
                "which includes copies in retry topics. Grant DESCRIBE_CONFIGS on the "
                "group, or run the command",
                command=command,
            )
        if value == "latest" and self._has_retry_topics:
            raise ConfigurationError(
                f"group {group!r} has {OFFSET_RESET}=latest, so it would never receive "
                "copies that are written to a retry topic before the group reads it; "
                'pass auto_offset_reset="earliest" (--auto-offset-reset earliest), or '
                f"run: {command}"
            )

    # The topics.

    async def _check_topics(self, executor: AdminExecutor) -> None:
        described = await self._describe(executor, PROPAGATION)
        sources = await self._read_sources(executor, described)
        if self._missing(described) and self._creates_topics:
            for topic in self._missing(described):
                await self._create(executor, self._creation(topic, sources))
            described = await self._describe(executor, CREATED)
        for topic in self._copies:
            error = rights_error(topic, described[topic.name])
            if error is not None:
                raise error
        missing = self._missing(described)
        if missing:
            raise missing_error(
                [
                    (each, create_command(self._creation(each, sources), self._servers))
                    for each in missing
                ]
            )
        await self._check_settings(executor, described, sources)

    async def _describe(
        self, executor: AdminExecutor, patience: float
    ) -> Results[str, Topic]:
        """Describe all topics, again for up to `patience` seconds if one is missing."""
        names = (*self._sources, *(topic.name for topic in self._copies))
        until = anyio.current_time() + min(patience, executor.deadline.left)
        while True:
            described = await describe_topics(
                executor, names, authorized_operations=True
            )
            is_final = self._creates_topics and patience == PROPAGATION
            if is_final or not self._missing(described):
                return described
            if anyio.current_time() + PAUSE >= until:
                return described
            await anyio.sleep(PAUSE)

    def _missing(self, described: Results[str, Topic]) -> list[CopyTopic]:
        return [each for each in self._copies if is_missing(described[each.name])]

    async def _read_sources(
        self, executor: AdminExecutor, described: Results[str, Topic]
    ) -> list[SourceTopic]:
        found = {
            name: described[name].value
            for name in self._sources
            if described[name].error is None
        }
        configs = await self._read_configs(executor, tuple(found))
        return [
            SourceTopic(
                name,
                len(topic.partitions),
                configs.get(name, {}),
                replicas_of(topic),
            )
            for name, topic in found.items()
        ]

    async def _read_configs(
        self, executor: AdminExecutor, topics: tuple[str, ...]
    ) -> Mapping[str, Mapping[str, str]]:
        """Return the configs of topics, except topics whose configs cannot be read."""
        described = await describe_configs(
            executor, ResourceKind.TOPIC, topics, CONFIGS
        )
        self._unreadable.update(
            {topic: str(error) for topic, error in described.errors.items()}
        )
        return {
            topic: {
                name: entry.value
                for name, entry in entries.items()
                if entry.value is not None
            }
            for topic, entries in described.found.items()
        }

    async def _check_settings(
        self,
        executor: AdminExecutor,
        described: Results[str, Topic],
        sources: Sequence[SourceTopic],
    ) -> None:
        configs = await self._read_configs(
            executor, tuple(topic.name for topic in self._copies)
        )
        problems = {
            topic: find_problems(
                topic,
                configs.get(topic.name, {}),
                replicas_of(described[topic.name].value),
                sources,
            )
            for topic in self._copies
            if described[topic.name].error is None
        }
        error = problem_error(problems, self._servers)
        if error is not None:
            raise error
        for topic, found in problems.items():
            self._warn(topic, found)
        if self._unreadable:
            self._log.warning(
                "configs not checked: copies of records can be lost, or new topics "
                "have the brokers' defaults. Grant DESCRIBE_CONFIGS on the topics",
                topics=list(self._unreadable),
                reason=next(iter(self._unreadable.values())),
            )

    def _warn(self, topic: CopyTopic, problems: Sequence[ConfigProblem]) -> None:
        for problem in problems:
            self._log.warning(
                "copies can be lost or refused, because of a setting of their topic",
                topic=topic.name,
                problem=str(problem),
                command=alter_command(topic, [problem], self._servers),
            )

    def _creation(
        self, topic: CopyTopic, sources: Sequence[SourceTopic]
    ) -> CreateTopic:
        own = topic.sources_in(sources)
        return creation_of(topic, own, self._settings.request_timeout)

    async def _create(self, executor: AdminExecutor, request: CreateTopic) -> None:
        try:
            created = await create_topic(executor, request)
        except BrokerError as error:
            command = create_command(request, self._servers)
            text = f"{error}; grant CREATE on the topic, or run: {command}"
            raise type(error)(text, code=error.code, name=error.name) from error
        if created:
            self._log.info(
                "topic created",
                topic=request.name,
                partitions=request.partitions,
                configs=dict(request.configs),
            )
