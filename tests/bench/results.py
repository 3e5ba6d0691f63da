"""What was measured, in a file that is whole after each measurement."""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

__all__ = ["NAME", "Results", "loaded"]

NAME: Final = "results.json"

Measurement = dict[str, Any]


def loaded(path: Path) -> dict[str, Any]:
    """Give the sessions (when, on what, how) and the measurements of a file."""
    content: dict[str, Any] = json.loads(path.read_text())
    return content


class Results:
    """The results of one run, after those of earlier runs if they are to be kept.

    A measurement says in which session and round it was taken: only within a round
    are clients compared.
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
        earlier = loaded(self.path) if add and self.path.exists() else {}
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

    def keep(self, measurement: Mapping[str, Any]) -> None:
        session = len(self._sessions) - 1
        self._measurements.append({"session": session, **measurement})
        self._save()

    def _save(self) -> None:
        """Write beside the file and rename: a cut leaves the one before."""
        content = {"sessions": self._sessions, "measurements": self._measurements}
        fresh = self.path.with_suffix(".new")
        fresh.write_text(_spelt(content))
        os.replace(fresh, self.path)


def _spelt(content: Mapping[str, list[Any]]) -> str:
    """Spell it with a line for each entry: a change of one is seen as such."""
    parts = (
        f'"{name}": [\n' + ",\n".join(json.dumps(each) for each in entries) + "\n]"
        for name, entries in content.items()
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"
