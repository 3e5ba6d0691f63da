"""The programs that consume: each a process with a journal, options as JSON.

`sharecons`, `taskiq`, `spark` and `confluent` are Python modules, `franz` is a Go
program. Each runs until SIGTERM, and then leaves its group.
"""

from dataclasses import dataclass
from typing import Final

__all__ = ["USER", "Options"]

USER: Final = "chaos"
"""The name for SCRAM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a process.

    Attributes:
        client_id: names all processes of a client to brokers, for quotas.
        kind: the way to consume, see `sharecons.KINDS`; the others have one.
        plans: which plans records have, see `plans.plan_of`.
        member: a member id that is kept over restarts; None is a new one each time.
        seconds: the time of a handler.
        retry_topic, dead_letter: the topics of workers, or empty.
        secrets: the directory of certificates and the password; empty for no TLS.
        interval: seconds between two samples of a process that measures itself.
    """

    servers: str
    topic: str
    group: str
    journal: str = ""
    client_id: str = ""
    kind: str = "loop"
    plans: str = "usual"
    member: str | None = None
    seconds: float = 0.005
    retry_topic: str = ""
    dead_letter: str = ""
    secrets: str = ""
    interval: float = 60.0
