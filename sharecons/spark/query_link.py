"""Connects the readers of one query, each in its own process, to a `SharedQuery`.

The owner listens on this machine until Spark first requests an offset; after that a
query with one reader has no socket. Requests and responses are lines of JSON. A reader
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
from sharecons.spark.factory import TAKEOVER_TIMEOUT
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.load_lock import Address, LoadLock
from sharecons.spark.options import QueryOptions
from sharecons.spark.shared_query import OWNER, Query, SharedQuery, in_use_error
from sharecons.spark.stream import StreamQuery

__all__ = ["AttachedQuery", "OwnedQuery", "open_query"]

RETRY: Final = 0.1
HOST: Final = "127.0.0.1"
ATTACH_TIMEOUT: Final = 5.0

Offset = dict[str, Any]

_log = get_logger(__name__)


def open_query(
    options: QueryOptions,
    load_id: str,
    opener: Callable[[QueryOptions, LoadLock], Query] = StreamQuery,
    timeout: float = TAKEOVER_TIMEOUT,
) -> "OwnedQuery | AttachedQuery":
    """Open the ledger, or attach to the reader of the same query that has opened it.

    Args:
        timeout: seconds to wait for a reader of another query to close the ledger.

    Raises:
        LedgerTakenError: a reader of another query still has it after that.
        Error: as `open_driver`.
    """
    lock = LoadLock(load_id)
    deadline, parent = time.monotonic() + timeout, os.getppid()
    overlaps = False
    while (holder := lock.try_acquire()) is not None:
        # One query opens its readers one after the other.
        overlaps = overlaps or holder.address is None
        if not overlaps and (query := AttachedQuery.attach(holder.address)):
            return query
        if time.monotonic() >= deadline or os.getppid() != parent:
            raise in_use_error(holder.name)
        time.sleep(RETRY)
    try:
        return OwnedQuery(opener(options, lock), lock)
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
            # A query with one reader works without a listener.
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

    def initial_offset(self) -> Offset:
        self._stop_listening()
        return self._shared.initial_offset(OWNER)

    def end_when_drained(self) -> None:
        self._shared.end_when_drained(OWNER)

    def latest_offset(
        self, start: Offset, *, max_offsets: int | None, min_offsets: int | None
    ) -> Offset:
        self._stop_listening()
        return self._shared.latest_offset(
            OWNER, start, max_offsets=max_offsets, min_offsets=min_offsets
        )

    def report_latest_offset(self) -> Offset:
        return self._shared.report_latest_offset(OWNER)

    def plan_tasks(self, start: Offset, end: Offset) -> list[list[AcquiredRange]]:
        self._stop_listening()
        return self._shared.plan_tasks(OWNER, start, end)

    def commit(self, end: Offset) -> None:
        self._stop_listening()
        self._shared.commit(OWNER, end)

    def request_stop(self) -> None:
        self._stop_listening()
        self._query.request_stop()

    def stop(self) -> None:
        self._stop_listening()
        self._query.stop()

    # Attached readers.

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
            token = lines.readline().strip()
            if not hmac.compare_digest(token, self._token.encode()):
                return
            reader = self._shared.attach()
            _send(lines, {"value": reader})
            if reader is None:
                return
            for line in lines:
                _send(lines, self._reply(reader, json.loads(line)))

    def _reply(self, reader: int, request: Mapping[str, Any]) -> Mapping[str, Any]:
        assert request["call"] in _CALLS, "sent by AttachedQuery"
        try:
            call = getattr(self._shared, request["call"])
            value = call(reader, *request["args"], **request["kwargs"])
        except Error as error:
            return {"error": type(error).__name__, "text": str(error)}
        except Exception as error:  # noqa: BLE001 (raised in the other process)
            return {"error": "Error", "text": f"{type(error).__name__}: {error}"}
        return {
            "value": _encode_tasks(value) if request["call"] == "plan_tasks" else value
        }


_CALLS: Final = frozenset(
    {
        "initial_offset",
        "end_when_drained",
        "latest_offset",
        "report_latest_offset",
        "plan_tasks",
        "commit",
    }
)


@final
class AttachedQuery:
    """The query of a reader that is attached to an `OwnedQuery` in another process."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lines = link.makefile("rwb")
        self._lock = threading.Lock()

    @classmethod
    def attach(cls, address: Address | None) -> "AttachedQuery | None":
        """Attach to a query, or return None if there is none that accepts readers."""
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
            is_attached = json.loads(query._lines.readline())["value"] is not None
        except (OSError, ValueError):
            is_attached = False
        if not is_attached:
            query.stop()
            return None
        link.settimeout(None)
        return query

    def initial_offset(self) -> Offset:
        offset: Offset = self._call("initial_offset")
        return offset

    def end_when_drained(self) -> None:
        self._call("end_when_drained")

    def latest_offset(
        self, start: Offset, *, max_offsets: int | None, min_offsets: int | None
    ) -> Offset:
        end: Offset = self._call(
            "latest_offset",
            start,
            max_offsets=max_offsets,
            min_offsets=min_offsets,
        )
        return end

    def report_latest_offset(self) -> Offset:
        offset: Offset = self._call("report_latest_offset")
        return offset

    def plan_tasks(self, start: Offset, end: Offset) -> list[list[AcquiredRange]]:
        return _decode_tasks(self._call("plan_tasks", start, end))

    def commit(self, end: Offset) -> None:
        self._call("commit", end)

    def request_stop(self) -> None:
        """End the current call, and all later ones, with ClosedError."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """Detach from the query; its owner continues."""
        self.request_stop()
        self._link.close()

    def _call(self, call: str, *args: object, **kwargs: object) -> Any:
        request = {"call": call, "args": args, "kwargs": kwargs}
        try:
            with self._lock:
                _send(self._lines, request)
                line = self._lines.readline()
            reply: dict[str, Any] = json.loads(line)
        except (OSError, ValueError) as error:
            raise ClosedError(
                "the reader that owns the ledger of this query has ended; start the "
                "query again"
            ) from error
        if "error" in reply:
            raise _recreate_error(reply["error"], reply["text"])
        return reply.get("value")


def _send(lines: Any, message: object) -> None:
    lines.write(json.dumps(message).encode() + b"\n")
    lines.flush()


def _encode_tasks(tasks: list[list[AcquiredRange]]) -> list[list[list[Any]]]:
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


def _decode_tasks(tasks: list[list[list[Any]]]) -> list[list[AcquiredRange]]:
    return [
        [
            AcquiredRange(topic, bytes.fromhex(topic_id), *rest)
            for topic, topic_id, *rest in task
        ]
        for task in tasks
    ]


def _recreate_error(name: str, text: str) -> Exception:
    """Return the error that was raised in the other process."""
    for module in (spark_errors, client_errors):
        kind = getattr(module, name, None)
        with suppress(TypeError):
            error = kind(text) if kind is not None else None
            if isinstance(error, Error):
                return error
    return Error(text)
