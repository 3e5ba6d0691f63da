"""The programs of docs/typed-records.md."""

import io
import json
import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import StringValue
from pydantic import BaseModel, TypeAdapter

from sharecons import DeadLetter, Producer, ShareWorker
from sharecons.testing import EmbeddedBroker, make_record
from tests.guides import Guide
from tests.waiting import until

PAGE = Guide("typed-records.md")
TEA = b'{"item": "tea", "pieces": 2}'


def names_of(number: int, **names: Any) -> SimpleNamespace:
    """Return the names that a program defines."""
    exec(PAGE.blocks[number], names)
    return SimpleNamespace(**names)


@pytest.mark.slow("runs a worker over TCP")
@pytest.mark.anyio
async def test_unreadable_order_is_a_dead_letter_and_others_are_objects(
    share_broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    for topic in ("orders", "orders.dead"):
        share_broker.create_topic(topic)
    share_broker.set_group_config("billing", {"share.auto.offset.reset": "earliest"})
    names: dict[str, Any] = {"servers": share_broker.bootstrap_servers}
    await PAGE.run(0, names)
    place = names_of(4, Order=names["Order"]).place
    async with Producer(bootstrap_servers=share_broker.bootstrap_servers) as producer:
        await place(producer, names["Order"](item="tea", pieces=2))
        await producer.send("orders", b'{"item": "tea", "pieces": 0}')
        await producer.send("orders", None, key=b"milk")

    worker: ShareWorker[Any, Any] = names["worker"]
    async with worker:
        await until(lambda: worker.stats.accepted == 2)
        await until(lambda: worker.stats.dead_lettered == 1)

    assert "tea 2\n" == capsys.readouterr().out
    (dead,) = share_broker.records("orders.dead")
    assert b'{"item": "tea", "pieces": 0}' == dead.value
    reason = dict(dead.headers)["sharecons.reason"] or b""
    assert b"greater than 0" in reason


@pytest.mark.parametrize("number", [1, 2])
def test_order_is_the_same_after_writing_and_reading(number: int) -> None:
    if number == 1:
        pytest.importorskip("msgspec")
    found = names_of(number, __name__="page")
    read = found.Order.from_json if number == 2 else found.read_order
    write = found.Order.to_json if number == 2 else found.write_order

    order = read(TEA)

    assert ("tea", 2) == (order.item, order.pieces)
    assert json.loads(TEA) == json.loads(write(order))
    with pytest.raises(Exception, match="'?pieces'?"):
        read(b'{"item": "tea"}')


def test_decoders_of_msgspec_take_views() -> None:
    pytest.importorskip("msgspec")

    assert "tea" == names_of(1).read_order(memoryview(TEA)).item


def test_dataclass_is_checked_by_a_type_adapter() -> None:
    # pydantic finds the module of a dataclass by its name.
    order = TypeAdapter(names_of(2, __name__=__name__).Order)

    with pytest.raises(ValueError, match="valid integer"):
        order.validate_json(b'{"item": "tea", "pieces": "two"}')


class Model(BaseModel):
    item: str


@dataclass
class Data:
    item: str


def struct_of_msgspec() -> Any:
    module = pytest.importorskip("msgspec")
    return module.defstruct("Struct", [("item", str)])("tea")


VALUES: Mapping[str, Callable[[], Any]] = {
    "JSON, a pydantic model": lambda: Model(item="tea"),
    "JSON, a msgspec struct": struct_of_msgspec,
    "MessagePack, a msgspec struct": struct_of_msgspec,
    "JSON, a dataclass that pydantic checks": lambda: Data("tea"),
    "JSON, without a check": lambda: {"item": "tea"},
    "text": lambda: "tea",
    "Protobuf without a registry": lambda: StringValue(value="tea"),
}


@pytest.mark.parametrize("kind", VALUES)
def test_functions_of_the_table_read_what_they_write(kind: str) -> None:
    (row,) = re.findall(rf"^\| {kind} \| `(.*)` \| `(.*)` \|$", PAGE.text, re.MULTILINE)
    value = VALUES[kind]()
    names = dict.fromkeys(("order", "value", "text"), value)
    names |= {"Order": type(value), "TypeAdapter": TypeAdapter, "json": json}
    names["msgspec"] = sys.modules.get("msgspec")
    read, written = (eval(code, names) for code in row)

    assert isinstance(written, bytes)
    assert value == read(written)


@pytest.mark.anyio
async def test_event_is_read_by_its_tag(capsys: pytest.CaptureFixture[str]) -> None:
    page = names_of(3)
    for value in (
        b'{"type": "placed", "item": "tea"}',
        b'{"type": "cancelled", "reason": "cold"}',
    ):
        await page.handle(make_record(page.read_event(value)))

    assert "pack tea\nstop: cold\n" == capsys.readouterr().out


def framed(schema: Any) -> bytes:
    fastavro = pytest.importorskip("fastavro")
    out = io.BytesIO(struct.pack(">bI", 0, 7))
    out.seek(5)
    fastavro.schemaless_writer(out, schema, {"item": "tea", "pieces": 2})
    return out.getvalue()


def avro_program() -> SimpleNamespace:
    pytest.importorskip("fastavro")
    return names_of(5)


def test_framed_avro_is_read_with_the_schema_of_its_id() -> None:
    page = avro_program()
    value = framed(page.SCHEMAS[7])

    assert {"item": "tea", "pieces": 2} == page.read_avro(value)
    with pytest.raises(ValueError, match="no schema has the id 8"):
        page.read_avro(value[:4] + b"\x08" + value[5:])


@contextmanager
def registry(schema: Any) -> Iterator[str]:
    """Serve one schema as a registry does; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path.startswith("/schemas/ids/7")
            found = {"schema": json.dumps(schema)}
            missing = {"error_code": 40403, "message": "not found"}
            body = json.dumps(found if is_known else missing).encode()
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"localhost:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow("imports a client of a registry, and starts one")
@pytest.mark.filterwarnings("ignore")
def test_deserializer_of_confluent_reads_framed_avro_in_a_handler(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("authlib")  # of confluent-kafka[schemaregistry]
    schema = avro_program().SCHEMAS[7]
    plain = {key: schema[key] for key in ("type", "name", "fields")}
    with registry(plain) as address:
        names: dict[str, Any] = {}
        exec(PAGE.blocks[6].replace("localhost:8081", address), names)
        names["charge"](make_record(framed(schema)))
        with pytest.raises(DeadLetter):
            names["charge"](make_record(b"{}"))

    assert "tea 2\n" == capsys.readouterr().out


def test_page_has_no_other_program() -> None:
    assert 7 == len(PAGE.blocks)
