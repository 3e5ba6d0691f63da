"""Download of jars for Spark from Maven Central, without their dependencies."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from sharecons.testing.kafka import LaunchError
from sharecons.testing.kafka.cache import cached_directory

__all__ = ["download_jars"]

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


def download_jars(name: str, artifacts: Sequence[str]) -> list[Path]:
    """Return the paths of the jars; the first call downloads them.

    Args:
        name: of the package that has these jars.

    Raises:
        LaunchError: neither Maven nor jgo could download them.
    """
    versions = [each.split(":")[2] for each in artifacts]
    fetch = partial(_fetch, name, artifacts)
    directory = cached_directory("-".join((name, *versions)), fetch)
    return [directory / _file(each) for each in artifacts]


def _file(artifact: str) -> str:
    _, name, version = artifact.split(":")
    return f"{name}-{version}.jar"


def _fetch(name: str, artifacts: Sequence[str], directory: Path) -> None:
    methods: list[Callable[[Sequence[str], Path], None]] = [_by_maven, _by_jgo]
    errors = []
    for method in methods:
        with tempfile.TemporaryDirectory(prefix="sharecons-") as scratch:
            try:
                method(artifacts, Path(scratch))
                for each in artifacts:
                    shutil.copy(Path(scratch) / _file(each), directory)
            except (LaunchError, OSError, RuntimeError) as error:
                errors.append(str(error))
            else:
                return
    raise LaunchError(f"the jars of {name} were not downloaded: {'; '.join(errors)}")


def _by_maven(artifacts: Sequence[str], directory: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise LaunchError("mvn is not on PATH")
    pom = directory / "pom.xml"
    lines = (DEPENDENCY.format(*each.split(":")) for each in artifacts)
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


def _by_jgo(artifacts: Sequence[str], directory: Path) -> None:
    """Download with jgo, which also copies the dependencies."""
    try:
        from sharecons.testing.kafka.resolver import copy_jars
    except ImportError as error:
        raise LaunchError(f"jgo is not installed ({error})") from error
    target = directory / "jars"
    target.mkdir()
    copy_jars(artifacts, target)
    for jar in target.iterdir():
        jar.rename(directory / jar.name)
