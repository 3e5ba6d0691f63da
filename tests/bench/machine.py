"""On what it was measured: the machine, without its name, and the versions."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from sharecons import COMPILED
from sharecons.testing.kafka.java import find_java
from sharecons.version import VERSION

__all__ = ["described"]

PACKAGES: Final = (
    "anyio",
    "kio",
    "cramjam",
    "crc32c",
    "trio",
    "uvloop",
    "confluent-kafka",
)
FRANZ: Final = Path(__file__).parent / "clients" / "franz" / "go.mod"
GIB: Final = 1 << 30


def described(kafka: str) -> dict[str, str]:
    """Give the lines of a table."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{_memory() / GIB:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "commit": _said(["git", "describe", "--always", "--dirty"]),
        "Kafka": kafka,
        "Java": _first(r'version "([^"]+)"', _said([str(find_java()), "-version"])),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "sharecons": f"{VERSION}, {'compiled' if COMPILED else 'plain Python'}",
        **{package: _installed(package) for package in PACKAGES},
        "librdkafka": _librdkafka(),
        "Go": _first(r"go([\d.]+)", _said(["go", "version"])),
        "franz-go": _first(r"franz-go v(\S+)", FRANZ.read_text()),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    return _first(r"model name\s*: (.+)", lines)


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _librdkafka() -> str:
    import confluent_kafka

    return str(confluent_kafka.libversion()[0])


def _said(command: Sequence[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip() if done.returncode == 0 else ""


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1].strip() if found else "none"
