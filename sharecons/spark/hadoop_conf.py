"""Finds Hadoop's default filesystem in configuration files and the environment.

Spark resolves paths without a scheme, of checkpoints and sinks, by `fs.defaultFS`. The
source runs in a Python process without a JVM, so it reads the files that the JVM reads:
`spark-defaults.conf`, then `core-site.xml` in the directories on Spark's classpath. It
cannot see settings of the program or the command line.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from xml.etree import ElementTree

from sharecons.errors import ConfigurationError

__all__ = ["DefaultFilesystem", "check_location", "find_default_filesystem"]

_NAMES: Final = ("fs.defaultFS", "fs.default.name")
_LOCAL: Final = ("", "file", "local")

# As java.util.Properties: a name ends with white space, "=" or ":".
_LINE: Final = re.compile(r"\s*spark\.hadoop\.([^\s=:]+)\s*[\s=:]\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class DefaultFilesystem:
    """The filesystem of paths without a scheme, and the file that sets it."""

    url: str
    file: Path


def check_location(location: str, environment: Mapping[str, str]) -> None:
    """Check that Spark and the source resolve a location to the same filesystem.

    Raises:
        ConfigurationError: the location has no scheme, and the default is not local.
    """
    if len(urlsplit(location).scheme) > 1:
        return
    default = find_default_filesystem(environment)
    if default is None or urlsplit(default.url).scheme in _LOCAL:
        return
    path = Path(os.path.abspath(os.path.expanduser(location)))
    root = default.url.rstrip("/")
    raise ConfigurationError(
        f"ledgerLocation {location!r} has no scheme, and paths without one are on "
        f"{root} for Spark (fs.defaultFS in {default.file}); write {path.as_uri()} for "
        f"the disk of the driver's machine, or {root}{path.as_posix()}"
    )


def find_default_filesystem(
    environment: Mapping[str, str],
) -> DefaultFilesystem | None:
    """Return Hadoop's default filesystem; None if no file sets it.

    Args:
        environment: the environment variables of Spark's processes.
    """
    spark = _spark_directory(environment)
    if spark is not None:
        file = spark / "spark-defaults.conf"
        url = _first(_of_defaults(_read(file)))
        if url is not None:
            return DefaultFilesystem(url, file)
    for directory in _on_classpath(environment, spark):
        file = directory / "core-site.xml"
        url = _first(_of_site(_read(file)))
        if url is not None:
            return DefaultFilesystem(url, file)
    return None


def _spark_directory(environment: Mapping[str, str]) -> Path | None:
    if environment.get("SPARK_CONF_DIR"):
        return Path(environment["SPARK_CONF_DIR"])
    home = environment.get("SPARK_HOME")
    return Path(home) / "conf" if home else None


def _on_classpath(environment: Mapping[str, str], spark: Path | None) -> Iterator[Path]:
    """Yield the directories of the classpath, in the order of Spark's launcher.

    $HADOOP_HOME/etc/hadoop is included only if SPARK_DIST_CLASSPATH names it.
    """
    if spark is not None:
        yield spark
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        if environment.get(name):
            yield Path(environment[name])
    for entry in environment.get("SPARK_DIST_CLASSPATH", "").split(os.pathsep):
        if entry and not entry.endswith(("*", ".jar")):
            yield Path(entry)


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _of_defaults(text: str) -> Mapping[str, str]:
    matches = (_LINE.fullmatch(line) for line in text.splitlines())
    return {match[1]: match[2] for match in matches if match}


def _of_site(text: str) -> Mapping[str, str]:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return {}
    return {
        (entry.findtext("name") or "").strip(): (entry.findtext("value") or "").strip()
        for entry in root.iter("property")
    }


def _first(found: Mapping[str, str]) -> str | None:
    return next((found[name] for name in _NAMES if found.get(name)), None)
