"""The health ports of workers: `/readyz` and `/metrics` of `sharecons run`."""

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import anyio
from anyio import to_thread
from prometheus_client.parser import text_string_to_metric_families

from sharecons.errors import ConfigurationError

__all__ = ["WorkerState", "Workers"]

READ_SECONDS: Final = 1.0
TIMEOUT: Final = 3.0
MAX_BYTES: Final = 4 << 20

GAUGES: Final[Mapping[str, str]] = {
    "sharecons_worker_records_running": "running",
    "sharecons_worker_records_held": "held",
    "sharecons_worker_records_waiting_in_place": "waiting",
    "sharecons_worker_records_waiting_in_retry_topics": "not due",
    "sharecons_worker_records_blocked": "blocked",
    "sharecons_worker_abandoned_threads": "abandoned threads",
}
OUTCOMES: Final = "sharecons_worker_outcomes"
DURATION: Final = "sharecons_worker_handler_duration_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """A worker, or several processes of one.

    Attributes:
        problems: the lines of `/readyz`; empty if it is ready.
        error: why it could not be read, or None.
        group: its group, even while it does not respond; empty if unknown.
        values: gauges, by a word for each.
        outcomes: how many records had each outcome, since its start.
        mean_duration: seconds of a call of a handler, or None.
    """

    url: str
    problems: tuple[str, ...] = ()
    error: str | None = None
    group: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    outcomes: Mapping[str, float] = field(default_factory=dict)
    mean_duration: float | None = None

    @property
    def is_ready(self) -> bool:
        return not self.problems and self.error is None

    @property
    def conditions(self) -> tuple[str, ...]:
        """The name of each condition that is not met: `busy-handlers`."""
        if self.error is not None:
            return ("no response",)
        return tuple(dict.fromkeys(map(_condition, self.problems)))


class Workers:
    """Reads the workers at some addresses, at intervals and when their page is opened.

    Raises:
        ConfigurationError: an address is not http:// or https://.
    """

    def __init__(self, urls: Iterable[str]) -> None:
        self.urls = tuple(url.rstrip("/") for url in urls)
        self._lock = anyio.Lock()
        self._latest: list[WorkerState] = []
        self._read_at = -math.inf
        for url in self.urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ConfigurationError(
                    f"a worker's address is like http://10.0.0.7:9931, not {url!r}"
                )

    async def read(self) -> list[WorkerState]:
        """Read all of them concurrently; errors are in the results.

        Calls within READ_SECONDS share a result: open pages come at the same time.
        """
        async with self._lock:
            if time.monotonic() - self._read_at > READ_SECONDS:
                self._latest = await self._read_all()
                self._read_at = time.monotonic()
        return self._latest

    async def read_repeatedly(self, interval: float) -> None:
        """Read at intervals until cancelled, for the pages of groups."""
        while self.urls:
            await self.read()
            await anyio.sleep(max(interval, READ_SECONDS))

    def by_group(self) -> dict[str, list[WorkerState]]:
        """Return the workers as last read, with those not ready first."""
        found: dict[str, list[WorkerState]] = {}
        for each in sorted(self._latest, key=lambda each: each.is_ready):
            found.setdefault(each.group, []).append(each)
        return found

    def not_ready(self) -> dict[str, str]:
        """Return the conditions of workers that are not ready, by their group."""
        found: dict[str, dict[str, None]] = {}
        for each in self._latest:
            if not each.is_ready:
                found.setdefault(each.group, {}).update(dict.fromkeys(each.conditions))
        return {group: ", ".join(names) for group, names in found.items()}

    async def _read_all(self) -> list[WorkerState]:
        found: dict[str, WorkerState] = {}
        groups = {each.url: each.group for each in self._latest}

        async def read(url: str) -> None:
            state = await to_thread.run_sync(_read, url, abandon_on_cancel=True)
            found[url] = replace(state, group=state.group or groups.get(url, ""))

        async with anyio.create_task_group() as tasks:
            for url in self.urls:
                tasks.start_soon(read, url)
        return [found[url] for url in self.urls]


class _NoRedirects(HTTPRedirectHandler):
    """Another address than the given one is not read."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


_OPENER: Final = build_opener(_NoRedirects)


def _read(url: str) -> WorkerState:
    try:
        status, ready = _get(f"{url}/readyz")
        _, metrics = _get(f"{url}/metrics")
        return _state(url, () if status == 200 else _lines(ready), metrics)
    except URLError as error:
        return WorkerState(url=url, error=f"does not respond: {error.reason}")
    except (OSError, ValueError) as error:
        return WorkerState(url=url, error=f"does not respond as a worker: {error}")


def _get(url: str) -> tuple[int, str]:
    try:
        with _OPENER.open(Request(url), timeout=TIMEOUT) as response:
            return response.status, response.read(MAX_BYTES).decode()
    except HTTPError as error:
        with error:
            return error.code, error.read(MAX_BYTES).decode()


def _condition(line: str) -> str:
    """Return the name in `process 1: busy-handlers: all 2 calls ...`."""
    first, *rest = line.split(": ")
    return rest[0] if rest and first.startswith("process ") else first


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line)


def _state(url: str, problems: tuple[str, ...], metrics: str) -> WorkerState:
    values: dict[str, float] = {}
    outcomes: dict[str, float] = {}
    group, seconds, calls = "", 0.0, 0.0
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            group = sample.labels.get("group", group)
            if sample.name in GAUGES:
                word = GAUGES[sample.name]
                values[word] = values.get(word, 0.0) + sample.value
            elif sample.name == f"{OUTCOMES}_total":
                outcome = sample.labels.get("outcome", "")
                outcomes[outcome] = outcomes.get(outcome, 0.0) + sample.value
            elif sample.name == f"{DURATION}_sum":
                seconds += sample.value
            elif sample.name == f"{DURATION}_count":
                calls += sample.value
    return WorkerState(
        url=url,
        problems=problems,
        group=group,
        values=values,
        outcomes=outcomes,
        mean_duration=seconds / calls if calls else None,
    )
