"""Results of a run in a JSON file, saved after each measurement."""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

__all__ = ["NAME", "Results", "load_results"]

NAME: Final = "results.json"

Measurement = dict[str, Any]


def load_results(path: Path) -> dict[str, Any]:
    """Return the sessions (time, machine, settings) and measurements of a file."""
    content: dict[str, Any] = json.loads(path.read_text())
    return content


class Results:
    """The results of one run, appended to earlier results if `add` is set.

    Each measurement has the numbers of its session and round: clients are compared
    within a round only.
    """

    def __init__(
        self,
        directory: Path,
        machine: Mapping[str, str],
        settings: Mapping[str, Any],
        *,
        add: bool,
        name: str = NAME,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / name
        earlier = load_results(self.path) if add and self.path.exists() else {}
        self._sessions: list[Any] = earlier.get("sessions", [])
        self._measurements: list[Measurement] = earlier.get("measurements", [])
        now = datetime.now().astimezone()
        self._sessions.append(
            {
                "begun": now.isoformat(timespec="minutes"),
                "machine": dict(machine),
                "settings": dict(settings),
            }
        )

    def append(self, measurement: Mapping[str, Any]) -> None:
        session = len(self._sessions) - 1
        self._measurements.append({"session": session, **measurement})
        self._save()

    def _save(self) -> None:
        """Write a temporary file and rename it, so that a crash keeps the old file."""
        content = {"sessions": self._sessions, "measurements": self._measurements}
        temporary = self.path.with_suffix(".new")
        temporary.write_text(_to_json(content))
        os.replace(temporary, self.path)


def _to_json(content: Mapping[str, list[Any]]) -> str:
    """Encode one entry per line, which keeps diffs small."""
    parts = (
        f'"{name}": [\n' + ",\n".join(json.dumps(each) for each in entries) + "\n]"
        for name, entries in content.items()
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"
