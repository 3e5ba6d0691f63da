"""Download of the jars of Spark's own Kafka source from Maven Central.

Only these four, without their dependencies, which Spark contains. All were published
for Spark 4.2, except the token provider, which works with any Spark 4.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sharecons.testing.kafka import LaunchError
from sharecons.testing.kafka.cache import cached_directory

__all__ = ["ARTIFACTS", "source_jars"]

ARTIFACTS: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)
TIMEOUT: Final = 900.0  # seconds for Maven with an empty repository
POM: Final = """<project>
<modelVersion>4.0.0</modelVersion>
<groupId>none</groupId><artifactId>jars</artifactId><version>1</version>
<dependencies>{}</dependencies>
</project>"""
DEPENDENCY: Final = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    "</exclusions></dependency>"
)


def source_jars() -> list[Path]:
    """Return the paths of the jars; the first call downloads them.

    Raises:
        LaunchError: neither Maven nor jgo could download them.
    """
    name = "-".join(("spark-source", *(each.split(":")[2] for each in ARTIFACTS)))
    directory = cached_directory(name, _fetch)
    return [directory / _file(each) for each in ARTIFACTS]


def _file(artifact: str) -> str:
    _, name, version = artifact.split(":")
    return f"{name}-{version}.jar"


def _fetch(directory: Path) -> None:
    methods: list[Callable[[Path], None]] = [_by_maven, _by_jgo]
    errors = []
    for method in methods:
        with tempfile.TemporaryDirectory(prefix="sharecons-") as scratch:
            try:
                method(Path(scratch))
                for each in ARTIFACTS:
                    shutil.copy(Path(scratch) / _file(each), directory)
            except (LaunchError, OSError, RuntimeError) as error:
                errors.append(str(error))
            else:
                return
    raise LaunchError(
        f"the jars of Spark's Kafka source were not downloaded: {'; '.join(errors)}"
    )


def _by_maven(directory: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise LaunchError("mvn is not on PATH")
    pom = directory / "pom.xml"
    lines = (DEPENDENCY.format(*each.split(":")) for each in ARTIFACTS)
    pom.write_text(POM.format("".join(lines)))
    what = ["dependency:copy-dependencies", f"-DoutputDirectory={directory}"]
    try:
        subprocess.run(
            [maven, "-q", "-B", "-f", str(pom), *what],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=TIMEOUT,
        )
    except subprocess.CalledProcessError as error:
        reason = error.stdout.strip().partition("\n")[0]
        raise LaunchError(f"mvn failed: {reason or error}") from error
    except subprocess.TimeoutExpired as error:
        raise LaunchError(f"mvn failed: {error}") from error


def _by_jgo(directory: Path) -> None:
    """Download with jgo, which also copies the dependencies."""
    try:
        from sharecons.testing.kafka.resolver import copy_jars
    except ImportError as error:
        raise LaunchError(f"jgo is not installed ({error})") from error
    target = directory / "jars"
    target.mkdir()
    copy_jars(ARTIFACTS, target)
    for jar in target.iterdir():
        jar.rename(directory / jar.name)
