"""A real Kafka that collects client telemetry, and the pushes that it has received.

Its reporter is a Java class, which is compiled with the JDK of the machine.
"""

import base64
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from sharecons.testing.broker.telemetry import values_of
from sharecons.testing.kafka import KafkaCluster
from sharecons.testing.kafka.jars import fetch_jars
from tests.kafka_plugin import VERSION

__all__ = ["RecordedPush", "TelemetryKafka", "telemetry_kafka"]

SOURCE: Final = Path(__file__).parent / "java" / "PushRecorder.java"
COMPILE_TIMEOUT: Final = 60.0


class RecordedPush(NamedTuple):
    """A push that the reporter has received."""

    client_instance_id: uuid.UUID
    terminating: bool
    data: bytes

    @property
    def values(self) -> Mapping[str, float]:
        """The values by the names of metrics."""
        return values_of(self.data)


class TelemetryKafka:
    """A Kafka cluster, and the directory of its reporter."""

    def __init__(self, cluster: KafkaCluster, directory: Path) -> None:
        self.bootstrap_servers = cluster.bootstrap_servers
        self._directory = directory

    def pushes_of(self, client_instance_id: uuid.UUID) -> list[RecordedPush]:
        """Return the pushes of a client, in order."""
        return [push for push in self.pushes if push[0] == client_instance_id]

    @property
    def pushes(self) -> list[RecordedPush]:
        """All pushes, in order."""
        files = sorted(self._directory.glob("*_*"))
        return [_read(file) for file in files if file.suffix != ".tmp"]


@contextmanager
def telemetry_kafka(
    directory: Path, config: dict[str, str] | None = None
) -> Iterator[TelemetryKafka]:
    """Run a Kafka with the reporter; skip the test without a Java compiler.

    Args:
        directory: for the class and the pushes.
        config: more settings of the broker.
    """
    classes, pushes = directory / "classes", directory / "pushes"
    pushes.mkdir()
    _compile(classes)
    settings = {
        "metric.reporters": "PushRecorder",
        "push.recorder.directory": str(pushes),
        **(config or {}),
    }
    with KafkaCluster(VERSION, config=settings, classpath=[classes]) as cluster:
        yield TelemetryKafka(cluster, pushes)


def _compile(classes: Path) -> None:
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("javac, which compiles the broker's reporter, is not installed")
    jars = fetch_jars(VERSION)
    command = [compiler, "-cp", str(jars / "*"), "-d", str(classes), str(SOURCE)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT
    )
    assert ended.returncode == 0, ended.stderr


def _read(file: Path) -> RecordedPush:
    # Kafka writes the 22 characters of its UUIDs in base64, with - and _.
    number, rest = file.name.split("_", 1)
    client, kind = rest.rsplit("_", 1)
    assert number.isdecimal()
    client_instance_id = uuid.UUID(bytes=base64.urlsafe_b64decode(client + "=="))
    return RecordedPush(client_instance_id, kind == "last", file.read_bytes())
