"""Description of the machine (without its host name) and software versions."""

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

__all__ = ["describe_machine"]

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


def describe_machine(kafka: str) -> dict[str, str]:
    """Return the rows of the table, name to value."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{_memory() / GIB:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "commit": _output_of(["git", "describe", "--always", "--dirty"]),
        "Kafka": kafka,
        "Java": _first_match(
            r'version "([^"]+)"', _output_of([str(find_java()), "-version"])
        ),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "sharecons": f"{VERSION}, {'compiled' if COMPILED else 'plain Python'}",
        **{package: _installed(package) for package in PACKAGES},
        "librdkafka": _librdkafka(),
        "Go": _first_match(r"go([\d.]+)", _output_of(["go", "version"])),
        "franz-go": _first_match(r"franz-go v(\S+)", FRANZ.read_text()),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    return _first_match(r"model name\s*: (.+)", lines)


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


def _output_of(command: Sequence[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip() if done.returncode == 0 else ""


def _first_match(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1].strip() if found else "none"
