"""How the readers of one query, each in its own process, share a `SharedQuery`.

The owner listens on this machine until Spark first asks it for an offset; a query with
one reader has no socket after that. Requests and replies are lines of JSON. A reader
first sends the token from the file of the `LoadLock`, which only this user can read.
"""

import hmac
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, final

from sharecons import errors as client_errors
from sharecons.errors import ClosedError, Error
from sharecons.log import get_logger
from sharecons.spark import errors as spark_errors
from sharecons.spark.factory import PATIENCE
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.load_lock import Address, LoadLock
from sharecons.spark.options import SourceOptions
from sharecons.spark.shared_query import OWNER, Query, SharedQuery, used_twice
from sharecons.spark.stream import StreamQuery

__all__ = ["AttachedQuery", "OwnedQuery", "open_query"]

RETRY: Final = 0.1
HOST: Final = "127.0.0.1"
ATTACH_TIMEOUT: Final = 5.0

Offset = dict[str, Any]

_log = get_logger(__name__)


def open_query(
    options: SourceOptions,
    load_id: str,
    opened: Callable[[SourceOptions, LoadLock], Query] = StreamQuery,
    patience: float = PATIENCE,
) -> "OwnedQuery | AttachedQuery":
    """Open the ledger, or attach to the reader of the same query that has opened it.

    Raises:
        LedgerTakenError: a reader of another query has it for `patience` seconds more.
        Error: as `open_driver`.
    """
    lock = LoadLock(load_id)
    deadline, parent = time.monotonic() + patience, os.getppid()
    overlaps = False
    while (holder := lock.try_acquire()) is not None:
        # One query asks its readers one after the other.
        overlaps = overlaps or holder.address is None
        if not overlaps and (query := AttachedQuery.attach(holder.address)):
            return query
        if time.monotonic() >= deadline or os.getppid() != parent:
            raise used_twice(holder.name)
        time.sleep(RETRY)
    try:
        return OwnedQuery(opened(options, lock), lock)
    except BaseException:
        lock.release()
        raise


@final
class OwnedQuery:
    """The query of the reader that opened the ledger; others attach to it."""

    def __init__(self, query: Query, lock: LoadLock) -> None:
        self._query = query
        self._shared = SharedQuery(query)
        self._token = secrets.token_hex(32)
        self._listens = False
        try:
            self._listener = socket.create_server((HOST, 0))
        except OSError as error:
            # A query with one reader does without.
            _log.warning("other readers cannot attach", reason=str(error))
            return
        self._listens = True
        threading.Thread(
            target=self._accept, daemon=True, name="sharecons-link"
        ).start()
        lock.publish(Address(self._port, self._token))

    @property
    def _port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def initial(self) -> Offset:
        self._stop_listening()
        return self._shared.initial(OWNER)

    def end_when_drained(self) -> None:
        self._shared.end_when_drained(OWNER)

    def latest(self, start: Offset, *, most: int | None, least: int | None) -> Offset:
        self._stop_listening()
        return self._shared.latest(OWNER, start, most=most, least=least)

    def report(self) -> Offset:
        return self._shared.report(OWNER)

    def tasks(self, start: Offset, end: Offset) -> list[list[AcquiredRange]]:
        self._stop_listening()
        return self._shared.tasks(OWNER, start, end)

    def commit(self, end: Offset) -> None:
        self._stop_listening()
        self._shared.commit(OWNER, end)

    def stop_soon(self) -> None:
        self._stop_listening()
        self._query.stop_soon()

    def stop(self) -> None:
        self._stop_listening()
        self._query.stop()

    # The readers that attach.

    def _stop_listening(self) -> None:
        self._shared.close()
        if not self._listens:
            return
        self._listens = False
        # Closing a socket does not end an `accept` in another thread.
        with suppress(OSError):
            socket.create_connection((HOST, self._port), 1).close()

    def _accept(self) -> None:
        with self._listener:
            while True:
                link, _ = self._listener.accept()
                if not self._listens:
                    link.close()
                    return
                threading.Thread(
                    target=self._serve, args=(link,), daemon=True, name="sharecons-link"
                ).start()

    def _serve(self, link: socket.socket) -> None:
        with suppress(OSError), link, link.makefile("rwb") as lines:
            said = lines.readline().strip()
            if not hmac.compare_digest(said, self._token.encode()):
                return
            reader = self._shared.attach()
            _send(lines, {"value": reader})
            if reader is None:
                return
            for line in lines:
                _send(lines, self._reply(reader, json.loads(line)))

    def _reply(self, reader: int, request: Mapping[str, Any]) -> Mapping[str, Any]:
        assert request["call"] in _CALLS, "asked by AttachedQuery"
        try:
            call = getattr(self._shared, request["call"])
            value = call(reader, *request["args"], **request["named"])
        except Error as error:
            return {"error": type(error).__name__, "text": str(error)}
        except Exception as error:  # noqa: BLE001 (raised where Spark asks)
            return {"error": "Error", "text": f"{type(error).__name__}: {error}"}
        return {"value": _written(value) if request["call"] == "tasks" else value}


_CALLS: Final = frozenset(
    {"initial", "end_when_drained", "latest", "report", "tasks", "commit"}
)


@final
class AttachedQuery:
    """The query of a reader that attached to another one's."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lines = link.makefile("rwb")
        self._asking = threading.Lock()

    @classmethod
    def attach(cls, address: Address | None) -> "AttachedQuery | None":
        """Attach, or return None if there is no query that would take this reader."""
        if address is None:
            return None
        try:
            link = socket.create_connection((HOST, address.port), ATTACH_TIMEOUT)
        except OSError:
            return None
        query = cls(link)
        try:
            query._lines.write(f"{address.token}\n".encode())
            query._lines.flush()
            is_taken = json.loads(query._lines.readline())["value"] is not None
        except (OSError, ValueError):
            is_taken = False
        if not is_taken:
            query.stop()
            return None
        link.settimeout(None)
        return query

    def initial(self) -> Offset:
        offset: Offset = self._ask("initial")
        return offset

    def end_when_drained(self) -> None:
        self._ask("end_when_drained")

    def latest(self, start: Offset, *, most: int | None, least: int | None) -> Offset:
        end: Offset = self._ask("latest", start, most=most, least=least)
        return end

    def report(self) -> Offset:
        offset: Offset = self._ask("report")
        return offset

    def tasks(self, start: Offset, end: Offset) -> list[list[AcquiredRange]]:
        return _read(self._ask("tasks", start, end))

    def commit(self, end: Offset) -> None:
        self._ask("commit", end)

    def stop_soon(self) -> None:
        """End the call that is under way, and any other."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """Leave the query; the reader that owns it goes on."""
        self.stop_soon()
        self._link.close()

    def _ask(self, call: str, *args: object, **named: object) -> Any:
        request = {"call": call, "args": args, "named": named}
        try:
            with self._asking:
                _send(self._lines, request)
                line = self._lines.readline()
            reply: dict[str, Any] = json.loads(line)
        except (OSError, ValueError) as error:
            raise ClosedError(
                "the reader of this query that has the ledger has ended; start the "
                "query again"
            ) from error
        if "error" in reply:
            raise _error(reply["error"], reply["text"])
        return reply.get("value")


def _send(lines: Any, message: object) -> None:
    lines.write(json.dumps(message).encode() + b"\n")
    lines.flush()


def _written(tasks: list[list[AcquiredRange]]) -> list[list[list[Any]]]:
    return [
        [
            [
                each.topic,
                each.topic_id.hex(),
                each.partition,
                each.first_offset,
                each.last_offset,
                each.delivery_count,
            ]
            for each in task
        ]
        for task in tasks
    ]


def _read(tasks: list[list[list[Any]]]) -> list[list[AcquiredRange]]:
    return [
        [
            AcquiredRange(topic, bytes.fromhex(spelt), *rest)
            for topic, spelt, *rest in task
        ]
        for task in tasks
    ]


def _error(name: str, text: str) -> Exception:
    """Make the error anew that was raised in the other process."""
    for module in (spark_errors, client_errors):
        kind = getattr(module, name, None)
        with suppress(TypeError):
            error = kind(text) if kind is not None else None
            if isinstance(error, Error):
                return error
    return Error(text)
