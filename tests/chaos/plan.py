"""The faults of a run, from its seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = [
    "CLOCK_KINDS",
    "KINDS",
    "ROLES",
    "SECURITY_KINDS",
    "Fault",
    "kinds_of",
    "plan_faults",
]

ROLES: Final = ("leader", "coordinator", "controller", "any")
"""How a run chooses the broker: of a partition, of the group, of the quorum."""

BROKER_KINDS: Final = (
    "kill broker",
    "kill broker",
    "stop broker",
    "pause broker",
    "full disk",
)
CLIENT_KINDS: Final = ("kill client", "stop client", "pause client")
NETWORK_KINDS: Final = ("cut", "stall", "throttle", "delay", "drop responses")
CONFIG_KINDS: Final = (
    "move leaders",
    "drain broker",
    "lock duration",
    "delivery limit",
    "add partitions",
    "quota",
    "deny topic",
    "recreate topic",
)
KINDS: Final = (*BROKER_KINDS, *CLIENT_KINDS, *NETWORK_KINDS, *CONFIG_KINDS)

SECURITY_KINDS: Final = (
    "renew certificates",
    "broker certificate",
    "client certificate",
    "password",
)
"""Of runs with TLS and SCRAM. The second and the third one let a certificate expire."""

CLOCK_KINDS: Final = ("wall clock", "monotonic clock")
"""Of runs with libfaketime: clocks of one process jump."""

DURATIONS: Final = {
    "kill broker": (2.0, 8.0),
    "stop broker": (1.0, 5.0),
    "pause broker": (5.0, 40.0),
    "full disk": (5.0, 15.0),
    "kill client": (0.0, 5.0),
    "stop client": (0.0, 2.0),
    "pause client": (5.0, 40.0),
    "stall": (2.0, 20.0),
    "throttle": (5.0, 20.0),
    "delay": (5.0, 20.0),
    "drop responses": (0.2, 3.0),
    "quota": (5.0, 20.0),
    "deny topic": (2.0, 10.0),
    "broker certificate": (20.0, 34.0),
    "client certificate": (20.0, 34.0),
    "wall clock": (5.0, 20.0),
    "drain broker": (5.0, 15.0),
    "recreate topic": (0.5, 8.0),
}
"""Seconds from the begin of a fault to its end; 0 for the others."""

BEGIN: Final = 10.0
"""Seconds until the first fault: all clients have joined and receive records."""

END: Final = 15.0
"""Seconds without faults at the end, in which records are still produced."""

GAPS: Final = (2.0, 10.0)

UPGRADE: Final = 30.0
"""Seconds that an upgrade of three brokers takes at least."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        at: seconds after the begin of the run.
        kind: one of KINDS.
        role: which broker, for faults of brokers and of their connections.
        number: chooses the partition, the client's process and the like.
        seconds: how long it lasts.
    """

    at: float
    kind: str
    role: str
    number: int
    seconds: float

    @property
    def end(self) -> float:
        return self.at + self.seconds

    def __str__(self) -> str:
        lasts = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.at:6.1f} s: {self.kind} ({self.role} {self.number}){lasts}"


def kinds_of(*, has_tls: bool, has_clocks: bool) -> tuple[str, ...]:
    """Return the kinds of a run; half of its faults are of the kinds it has alone."""
    special = (*SECURITY_KINDS * has_tls, *CLOCK_KINDS * has_clocks)
    return (*KINDS, *special * (len(KINDS) // max(len(special), 1)))


def plan_faults(
    seed: int, seconds: float, kinds: Sequence[str] = KINDS, *, upgrades: bool = False
) -> list[Fault]:
    """Return the faults of a run, in the order of their times.

    They follow one another with gaps, so that a majority of the brokers runs at any
    time; one fault in four begins while the one before it lasts, if one of them is of a
    client.

    Args:
        upgrades: the run begins with an older Kafka, and with its rolling upgrade.
    """
    chance = random.Random(f"chaos {seed}")
    faults: list[Fault] = []
    now = BEGIN
    if upgrades:
        faults.append(Fault(now, "upgrade", "any", 0, 0.0))
        now += UPGRADE + chance.uniform(*GAPS)
    while True:
        kind = chance.choice(kinds)
        low, high = DURATIONS.get(kind, (0.0, 0.0))
        duration = min(chance.uniform(low, high), max(0.0, seconds - END - now))
        if now + duration > seconds - END or (low and duration < low):
            return faults
        role, number = chance.choice(ROLES), chance.randrange(1000)
        faults.append(Fault(now, kind, role, number, duration))
        is_overlapped = kind in CLIENT_KINDS and chance.random() < 0.25
        now += chance.uniform(0.5, 2.0) if is_overlapped else duration
        now += chance.uniform(*GAPS)
