"""Who takes part, how each is started, and in what."""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

__all__ = ["CLIENTS", "Client", "MissingError", "Roster", "candidates"]

FRANZ: Final = Path(__file__).parent / "clients" / "franz"
ALL: Final = ("throughput", "first")
GROWTH: Final = ("partitions", "consumers")


class MissingError(Exception):
    """Something that a client needs is not on this machine."""


@dataclass(frozen=True, slots=True)
class Client:
    """A way of reading a share group.

    Attributes:
        title: what tables and pictures call it.
        program: its module in `tests.bench.clients`, or "franz".
        arguments: beside those that all get.
        needs: a package that it does not work without.
        does: what it takes part in.
        on_request: only if it is asked for by name.
    """

    title: str
    program: str
    arguments: Sequence[str] = ()
    needs: str = "kio"
    does: Sequence[str] = ALL
    on_request: bool = False


CLIENTS: Final[Mapping[str, Client]] = {
    "sharecons": Client(
        "sharecons: async for",
        "ours",
        does=(*ALL, "latency", "redelivery", *GROWTH, "slow"),
    ),
    "sharecons-explicit": Client("sharecons: explicit", "ours", ("--mode", "explicit")),
    "sharecons-batches": Client("sharecons: batches()", "ours", ("--mode", "batches")),
    "sharecons-poll": Client(
        "sharecons: poll()", "ours", ("--mode", "poll"), on_request=True
    ),
    "sharecons-uvloop": Client(
        "sharecons: on uvloop",
        "ours",
        ("--loop", "uvloop"),
        needs="uvloop",
        does=(*ALL, "latency"),
    ),
    "sharecons-trio": Client(
        "sharecons: on trio", "ours", ("--loop", "trio"), needs="trio"
    ),
    "confluent": Client(
        "confluent-kafka-python",
        "confluent",
        needs="confluent_kafka",
        does=(*ALL, "latency", "redelivery", *GROWTH),
    ),
    "confluent-explicit": Client(
        "confluent: explicit",
        "confluent",
        ("--mode", "explicit"),
        needs="confluent_kafka",
        on_request=True,
    ),
    "java": Client("Kafka's own (Java)", "java", needs="psutil"),
    "franz": Client("franz-go (Go)", "franz", does=(*ALL, "latency", *GROWTH)),
    "raw": Client("raw ceiling", "raw", does=(*ALL, "partitions")),
}


def candidates(what: str, asked: Sequence[str] | None) -> list[str]:
    """Give the names of those that take part in something."""
    return [
        name
        for name, client in CLIENTS.items()
        if what in client.does
        and (name in asked if asked is not None else not client.on_request)
    ]


class Roster:
    """Gives the command that starts a client; what must be built is built once."""

    def __init__(self, scratch: Path, kafka_version: str) -> None:
        self._scratch = scratch
        self._kafka_version = kafka_version
        self._franz: Path | None = None

    def command(self, name: str) -> list[str]:
        """Give a client's command, without what to read.

        Raises:
            MissingError: it cannot be started here; the message says why.
        """
        client = CLIENTS[name]
        if find_spec(client.needs) is None:
            raise MissingError(f"the package {client.needs} is not installed")
        if client.program == "franz":
            self._franz = self._franz or _built(self._scratch / "franz")
            return [str(self._franz), *client.arguments]
        module = [sys.executable, "-m", f"tests.bench.clients.{client.program}"]
        if client.program == "java":
            return [*module, "--kafka-version", self._kafka_version]
        return [*module, *client.arguments]


def _built(program: Path) -> Path:
    if (go := shutil.which("go")) is None:
        raise MissingError("there is no go on PATH")
    done = subprocess.run(
        [go, "build", "-buildvcs=false", "-o", str(program), "."],
        cwd=FRANZ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it gave no reason"]
        raise MissingError(f"go build failed: {said[-1]}")
    return program
