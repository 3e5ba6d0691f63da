"""Downloads Kafka's jars from Maven Central.

Maven is tried first, since its settings have a company's mirrors and proxies; without
it, the wheel `jgo` resolves the same jars in Python. Both found the same 92 jars (93
for 4.1 and 4.2), in 4 to 8 s and 2 s.
"""

import logging
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from sharecons.testing.kafka.cache import cached_directory
from sharecons.testing.kafka.errors import LaunchError

__all__ = ["fetch_jars"]

MAVEN_TIMEOUT: Final = (
    900.0  # seconds for Maven, with a slow line and an empty repository
)

# Without an slf4j binding in the class path a broker logs nothing.
# 1.7 is the API version that Kafka includes.
LOGGING: Final = "org.slf4j:slf4j-simple:1.7.36"

POM: Final = """<project>
<modelVersion>4.0.0</modelVersion>
<groupId>none</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies>
</project>"""
DEPENDENCY: Final = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId>"
    "<version>{}</version></dependency>"
)

log = logging.getLogger("sharecons.testing.kafka")


FIRST_VERSION: Final = (4, 1)
"""The first version with share groups."""


def fetch_jars(version: str) -> Path:
    """Return a directory with the jars of a Kafka, downloaded the first time.

    Raises:
        LaunchError: the jars cannot be downloaded.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+[\w.-]*", version):
        raise LaunchError(f"{version!r} is not a version of Kafka, such as 4.3.0")
    if tuple(map(int, version.split(".")[:2])) < FIRST_VERSION:
        raise LaunchError(f"Kafka {version} has no share groups: use 4.1.1 or newer")
    return cached_directory(f"kafka-{version}", partial(_download, version))


def coordinates(version: str) -> list[str]:
    kafka = ("org.apache.kafka:kafka_2.13", "org.apache.kafka:kafka-tools")
    return [*(f"{artifact}:{version}" for artifact in kafka), LOGGING]


def _download(version: str, directory: Path) -> None:
    log.info(
        "downloading Apache Kafka %s from Maven Central: 55 MB, up to a minute, "
        "only this first time",
        version,
    )
    errors = []
    for way in (_by_maven, _by_jgo):
        try:
            _try(way, coordinates(version), directory)
        except LaunchError as error:
            errors.append(str(error))
        else:
            return
    raise LaunchError(
        f"Apache Kafka {version} could not be downloaded: {'; '.join(errors)}"
    )


def _try(
    way: Callable[[Iterable[str], Path], None], wanted: list[str], directory: Path
) -> None:
    """Try one way; if it fails, leave the directory empty."""
    try:
        way(wanted, directory)
    except LaunchError:
        shutil.rmtree(directory)
        directory.mkdir()
        raise


def _by_maven(wanted: Iterable[str], directory: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise LaunchError("mvn is not on PATH")
    with tempfile.TemporaryDirectory(prefix="sharecons-") as scratch:
        pom = Path(scratch) / "pom.xml"
        lines = [DEPENDENCY.format(*coordinate.split(":")) for coordinate in wanted]
        pom.write_text(POM.format(dependencies="".join(lines)))
        _run_maven(maven, pom, directory)


def _run_maven(maven: str, pom: Path, directory: Path) -> None:
    goal = "dependency:copy-dependencies"
    what = [goal, "-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
    try:
        subprocess.run(
            [maven, "-q", "-B", "-f", str(pom), *what],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
            timeout=MAVEN_TIMEOUT,
        )
    except subprocess.CalledProcessError as error:
        output = re.sub(r"\x1b\[\d*m", "", error.stdout).strip().partition("\n")[0]
        raise LaunchError(f"mvn failed: {output or error}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"mvn failed: {error}") from error


def _by_jgo(wanted: Iterable[str], directory: Path) -> None:
    try:
        from sharecons.testing.kafka.resolver import copy_jars
    except ImportError as error:
        raise LaunchError(
            f"jgo is not installed ({error}): pip install 'sharecons[kafka]'"
        ) from error
    try:
        copy_jars(wanted, directory)
    except (OSError, RuntimeError) as error:  # requests' errors are OSErrors
        raise LaunchError(f"jgo failed: {error}") from error
