"""The clients: how each is started and which measurements it takes part in."""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

__all__ = ["CLIENTS", "Client", "MissingError", "Roster", "build_go", "clients_for"]

FRANZ: Final = Path(__file__).parent / "clients" / "franz"
# The default of sharecons. Responses of 50 MiB, the default of the others, cost a
# client more: each is in new memory.
SHARECONS_MAX_BYTES: Final = 8 << 20
BASIC_MEASUREMENTS: Final = ("throughput", "first")
GROWTH_MEASUREMENTS: Final = ("partitions", "consumers")


class MissingError(Exception):
    """A requirement of a client is not installed on this machine."""


@dataclass(frozen=True, slots=True)
class Client:
    """A way of reading a share group.

    Attributes:
        title: name in tables and pictures.
        program: module in `tests.bench.clients`, or "franz".
        arguments: further arguments of the program.
        needs: the package that it requires.
        measurements: the measurements that it takes part in.
        on_request: runs only if `--clients` names it.
    """

    title: str
    program: str
    arguments: Sequence[str] = ()
    needs: str = "kio"
    measurements: Sequence[str] = BASIC_MEASUREMENTS
    on_request: bool = False


CLIENTS: Final[Mapping[str, Client]] = {
    "sharecons": Client(
        "sharecons: async for",
        "sharecons",
        measurements=(
            *BASIC_MEASUREMENTS,
            "latency",
            "redelivery",
            *GROWTH_MEASUREMENTS,
            "slow",
            "large",
            "memory",
        ),
    ),
    "sharecons-explicit": Client(
        "sharecons: explicit", "sharecons", ("--mode", "explicit")
    ),
    "sharecons-batches": Client(
        "sharecons: batches()",
        "sharecons",
        ("--mode", "batches"),
        measurements=(*BASIC_MEASUREMENTS, "consumers", "large"),
    ),
    "sharecons-views": Client(
        "sharecons: memoryview",
        "sharecons",
        ("--values", "memoryview"),
        measurements=("large",),
    ),
    "sharecons-worker": Client(
        "sharecons: worker", "sharecons_worker", measurements=("memory",)
    ),
    "sharecons-uvloop": Client(
        "sharecons: on uvloop",
        "sharecons",
        ("--loop", "uvloop"),
        needs="uvloop",
        measurements=(*BASIC_MEASUREMENTS, "latency"),
    ),
    "sharecons-trio": Client(
        "sharecons: on trio", "sharecons", ("--loop", "trio"), needs="trio"
    ),
    "confluent": Client(
        "confluent-kafka-python",
        "confluent",
        needs="confluent_kafka",
        measurements=(
            *BASIC_MEASUREMENTS,
            "latency",
            "redelivery",
            *GROWTH_MEASUREMENTS,
            "large",
        ),
    ),
    "confluent-crcs": Client(
        "confluent: check.crcs",
        "confluent",
        ("--check-crcs",),
        needs="confluent_kafka",
        measurements=("large",),
    ),
    "confluent-8mib": Client(
        "confluent: fetches of 8 MiB",
        "confluent",
        ("--max-bytes", str(SHARECONS_MAX_BYTES)),
        needs="confluent_kafka",
        measurements=("large",),
        on_request=True,
    ),
    "java": Client("Kafka's own (Java)", "java", needs="psutil"),
    "franz": Client(
        "franz-go (Go)",
        "franz",
        measurements=(*BASIC_MEASUREMENTS, "latency", *GROWTH_MEASUREMENTS, "large"),
    ),
    "raw": Client(
        "raw ceiling",
        "raw",
        measurements=(*BASIC_MEASUREMENTS, "partitions"),
    ),
    "raw-8mib": Client(
        "raw ceiling, 8 MiB",
        "raw",
        ("--max-bytes", str(SHARECONS_MAX_BYTES)),
        measurements=("large",),
    ),
}


def clients_for(what: str, requested: Sequence[str] | None) -> list[str]:
    """Return the names of the clients that take part in a measurement."""
    return [
        name
        for name, client in CLIENTS.items()
        if what in client.measurements
        and (name in requested if requested is not None else not client.on_request)
    ]


class Roster:
    """Start commands of the clients. Builds the Go client on first use."""

    def __init__(self, scratch: Path, kafka_version: str) -> None:
        self._scratch = scratch
        self._kafka_version = kafka_version
        self._franz: Path | None = None

    def command(self, name: str) -> list[str]:
        """Return a client's command, without the arguments of a run.

        Raises:
            MissingError: a requirement of the client is not installed.
        """
        client = CLIENTS[name]
        if find_spec(client.needs) is None:
            raise MissingError(f"the package {client.needs} is not installed")
        if client.program == "franz":
            self._franz = self._franz or build_go(FRANZ, self._scratch / "franz")
            return [str(self._franz), *client.arguments]
        module = [sys.executable, "-m", f"tests.bench.clients.{client.program}"]
        if client.program == "java":
            return [*module, "--kafka-version", self._kafka_version]
        return [*module, *client.arguments]


def build_go(directory: Path, program: Path) -> Path:
    """Build the Go program of a directory, and return its path.

    Raises:
        MissingError: Go is not installed, or the program cannot be built.
    """
    if (go := shutil.which("go")) is None:
        raise MissingError("go is not on PATH")
    done = subprocess.run(
        [go, "build", "-buildvcs=false", "-o", str(program), "."],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise MissingError(f"go build failed: {lines[-1]}")
    return program
