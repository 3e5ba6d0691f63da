"""What was measured, in a file that is whole after each measurement."""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from tests.bench.machine import described
from tests.bench.results import loaded
from tests.bench.spark.jars import ARTIFACTS

__all__ = ["NAME", "Figures", "machine"]

NAME: Final = "spark.json"

# Of what the other benchmark says of its machine: those that take part here.
OF_BOTH: Final = (
    "processor",
    "memory",
    "system",
    "commit",
    "Kafka",
    "Java",
    "Python",
    "sharecons",
    "kio",
    "cramjam",
    "crc32c",
)


def machine(kafka: str) -> dict[str, str]:
    """Give the lines of a table."""
    about = described(kafka)
    named = (each.split(":")[1:] for each in ARTIFACTS)
    return {
        **{name: about[name] for name in OF_BOTH},
        **{name: version(name) for name in ("pyspark", "pyarrow")},
        **dict(named),
    }


class Figures:
    """The results of one run, after those of earlier runs if they are to be kept."""

    def __init__(
        self,
        directory: Path,
        about: Mapping[str, str],
        settings: Mapping[str, Any],
        *,
        add: bool,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / NAME
        earlier = loaded(self.path) if add and self.path.exists() else {}
        now = datetime.now().astimezone().isoformat(timespec="minutes")
        session = {"begun": now, "machine": dict(about), "settings": dict(settings)}
        self.content: dict[str, list[Any]] = {
            "sessions": [*earlier.get("sessions", []), session],
            "measurements": earlier.get("measurements", []),
        }

    def keep(self, measurement: Mapping[str, Any]) -> None:
        """Write beside the file and rename: a cut leaves the one before."""
        session = len(self.content["sessions"]) - 1
        self.content["measurements"].append({"session": session, **measurement})
        fresh = self.path.with_suffix(".new")
        fresh.write_text(_spelt(self.content))
        os.replace(fresh, self.path)


def _spelt(content: Mapping[str, list[Any]]) -> str:
    """Spell it with a line for each entry: a change of one is seen as such."""
    parts = (
        f'"{name}": [\n' + ",\n".join(json.dumps(each) for each in entries) + "\n]"
        for name, entries in content.items()
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"
