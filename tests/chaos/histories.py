"""The kind of a run, its topics and its version, by the seed and the command line."""

import random
from dataclasses import dataclass
from typing import Final

__all__ = ["CRASHING", "ROTATION", "History", "history_of"]

ROTATION: Final = (
    "loop",
    "explicit",
    "worker",
    "threads",
    "batches",
    "keys",
    "redrive",
    "crash",
    "taskiq",
    "spark",
)
"""The kinds of seeds, one after the other."""

CRASHING: Final = ("worker", "threads", "batches", "keys", "taskiq")
"""How the records are processed in runs in which some end their process."""

REDRIVING: Final = ("worker", "threads", "batches")

PLAIN: Final = ("loop", "explicit", "worker", "threads", "batches", "keys")
"""The ways to process records that one program has."""

ONE_PROCESS: Final = ("spark",)

OLDER: Final = "4.3.0"
NEWEST: Final = "4.4.0"
"""The version after an upgrade."""


@dataclass(frozen=True, kw_only=True)
class History:
    """The properties of a run that are not its faults.

    Attributes:
        kind: one of ROTATION.
        handler: the way to consume: the kind, or of "crash" and "redrive" another one.
        keeps_ids: members of sharecons keep their ids when they are started again.
        has_retry_topic, has_dead_letters: workers have these topics.
        version: of the brokers at first.
    """

    kind: str
    handler: str
    keeps_ids: bool
    has_retry_topic: bool
    has_dead_letters: bool
    version: str

    @property
    def plans(self) -> str:
        """The plans of its records, see `clients.plans`."""
        if self.kind in ("crash", "spark"):
            return "crash"
        return "redrive" if self.kind == "redrive" else "usual"

    @property
    def allows_tls(self) -> bool:
        """True if all programs of the run can use TLS."""
        return self.handler in PLAIN and self.kind != "redrive"

    @property
    def allows_clocks(self) -> bool:
        """True if clocks of its processes can jump; a JVM's clocks cannot."""
        return self.kind != "spark"


def history_of(seed: int, kind: str | None = None) -> History:
    """Return the history of a seed; its kind is the seed's if it is not given."""
    chance = random.Random(f"history {seed}")
    kind = kind or ROTATION[seed % len(ROTATION)]
    handlers = {"crash": CRASHING, "redrive": REDRIVING}.get(kind, (kind,))
    handler = chance.choice(handlers)
    keeps_ids, retries = chance.random() < 0.5, chance.random() < 0.5
    is_older, has_letters = chance.random() < 0.2, chance.random() < 0.7
    return History(
        kind=kind,
        handler=handler,
        # taskiq's supervisor starts a process again that ends by itself.
        keeps_ids=keeps_ids or (kind == "crash" and handler == "taskiq"),
        # Records with an order by key never move to a retry topic.
        has_retry_topic=retries and handler != "keys",
        has_dead_letters=kind != "crash" or has_letters,
        version=OLDER if is_older else NEWEST,
    )
