"""The options of a worker, checked."""

from dataclasses import dataclass

from sharecons.worker.machine.settings import HandlerSettings

__all__ = ["WorkerOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The options of `ShareWorker`, and the settings of its handler."""

    concurrency: int
    max_bytes: int
    shutdown_grace: float
    handler: HandlerSettings
