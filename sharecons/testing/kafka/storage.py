"""A broker's empty storage, formatted once for each version of Kafka.

Kafka's tool takes 0.6 s for each node to start its JVM. But its output is the same for
every node and cluster, except for meta.properties, which is text. So the output is kept
as a template and copied.
"""

import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sharecons.testing.kafka.cache import cached_directory
from sharecons.testing.kafka.errors import LaunchError
from sharecons.testing.kafka.settings import format_properties, node_settings

__all__ = ["format_storage", "random_id"]

META: Final = "meta.properties"
FORMAT_TIMEOUT: Final = 60.0

JavaCommand = Callable[..., list[str]]


def format_storage(
    data: Path, version: str, java: JavaCommand, node_id: int, cluster_id: str
) -> None:
    """Create a node's data directory, unless it is formatted already."""
    if (data / META).exists():
        return
    template = cached_directory(f"formatted-{version}", partial(_format, version, java))
    shutil.copytree(template, data, dirs_exist_ok=True)
    meta = {
        "version": "1",
        "cluster.id": cluster_id,
        "node.id": str(node_id),
        "directory.id": random_id(),
    }
    (data / META).write_text(format_properties(meta))


def random_id() -> str:
    """Return a random id in Kafka's form: 16 bytes in base64, no leading dash."""
    while True:
        text = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _format(version: str, java: JavaCommand, directory: Path) -> None:
    with TemporaryDirectory(prefix="sharecons-") as scratch:
        data, properties = Path(scratch, "data"), Path(scratch, "server.properties")
        node = {**node_settings(1, {1: 9092}, {1: 9093}), "log.dirs": str(data)}
        properties.write_text(format_properties(node))
        _run_tool(java, version, properties)
        shutil.copytree(data, directory, dirs_exist_ok=True)
    (directory / META).unlink()


def _run_tool(java: JavaCommand, version: str, properties: Path) -> None:
    what = ["format", "-t", random_id(), "-c", str(properties), *_features(version)]
    done = subprocess.run(
        java("kafka.tools.StorageTool", *what),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=FORMAT_TIMEOUT,
    )
    if done.returncode:
        raise LaunchError(f"Kafka's storage could not be formatted: {done.stdout}")


def _features(version: str) -> list[str]:
    """Enable share groups where they are a preview; since 4.2 they are enabled."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return ["--feature", "share.version=1"] if (major, minor) < (4, 2) else []
