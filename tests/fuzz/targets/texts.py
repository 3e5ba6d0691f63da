"""Files and texts that users write: properties, options of commands, settings of
brokers, and lines of records.
"""

import argparse
import contextlib
import io
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import anyio
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from sharecons import cli
from sharecons.cli.consume.deserializers import (
    NAMES,
    DeserializeError,
    find_deserializer,
)
from sharecons.cli.groups.offsets_file import OffsetsFileError, read_offsets
from sharecons.cli.produce.json_lines import parse_json_line
from sharecons.cli.produce.line_format import PROPERTIES, LineFormat
from sharecons.cli.produce.new_line import LineError
from sharecons.cli.record_text import format_bytes, format_time, json_value
from sharecons.config.validation import check_offset_reset, parse_bootstrap
from sharecons.errors import ConfigurationError
from sharecons.properties import settings
from sharecons.properties.arguments import load_properties, load_security
from sharecons.properties.consumer_properties import ARGUMENTS, REFUSED
from sharecons.properties.known_properties import SUPPORTED
from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.broker.addresses import parse_address
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.settings.brokers import BROKERS
from sharecons.testing.broker.settings.groups import GROUPS
from sharecons.testing.broker.settings.topics import TOPICS
from tests.fuzz.drawing import changed, integers, texts
from tests.fuzz.target import Case, Target

__all__ = ["TARGETS"]


# Properties files.

MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
VALUES: Final = (
    "localhost:9092",
    "[::1]:9092,b:1",
    "SASL_SSL",
    "SASL_PLAINTEXT",
    "SSL",
    "PLAIN",
    "SCRAM-SHA-512",
    "OAUTHBEARER",
    "true",
    "explicit",
    "file:///nowhere",
    "file://[",
    "https://id.example/token",
    "-----BEGIN CERTIFICATE-----",
    "-----END CERTIFICATE-----",
    f'{MODULE} username="alice" password="secret";',
    f'{MODULE} unsecuredLoginStringClaim_sub="a" unsecuredLoginLifetimeSeconds=',
    f'{MODULE} clientId="a" clientSecret="b" scope=',
    MODULE,
    '"',
    "';",
    ";",
    "\\",
)
USUAL: Final = (
    "security.protocol=SASL_SSL",
    "security.protocol=SASL_PLAINTEXT",
    "sasl.mechanism=OAUTHBEARER",
    "sasl.mechanism=PLAIN",
    "bootstrap.servers=localhost:9092",
    "group.id=billing",
    "sasl.username=alice",
    "sasl.password=secret",
    "sasl.oauthbearer.token.endpoint.url=https://id.example/token",
)


def _properties() -> SearchStrategy[bytes]:
    names = st.sampled_from(sorted({*ARGUMENTS, *SUPPORTED, *REFUSED}))
    lines = st.builds(
        lambda name, separator, value: f"{name}{separator}{value}",
        names | texts("ssl.", "sasl.", max_parts=2),
        st.sampled_from(("=", "=", ":", " ", "")),
        texts(*VALUES, max_parts=3),
    )
    usual = st.lists(st.sampled_from(USUAL), max_size=6)
    return st.builds(
        lambda first, second: "\n".join([*first, *second]).encode(
            "utf-8", "backslashreplace"
        ),
        usual,
        st.lists(lines, max_size=4),
    )


def _check_properties(content: Case) -> None:
    with tempfile.NamedTemporaryFile(suffix=".properties") as file:
        file.write(content)
        file.flush()
        for read in (
            load_properties,
            load_security,
            lambda path: settings.load(command_config=path, environ={}),
        ):
            with contextlib.suppress(ConfigurationError):
                read(file.name)


# Options of commands.

QUICK: Final = (
    "create-topics",
    "dead-letters",
    "groups",
    "migrate",
    "peek",
    "preflight",
)
"""Commands that end if no broker can be reached; others are only parsed."""

UNREACHABLE: Final = ("--bootstrap-server", "127.0.0.1:1", "--timeout", "1")
WORDS: Final = (
    "orders",
    "billing",
    "orders:0,1",
    "a=b",
    "20s",
    "10ms",
    "latest",
    "earliest",
    "by_duration:PT1H",
    "2026-11-21T10:00:00",
    "0001-01-01",
    "PT1H",
    "-",
    ":",
    "=",
    ",",
    "@",
    "share.delivery.count.limit=",
)


@cache
def _commands() -> dict[str, list[list[str]]]:
    """Return the words of each command, with the options that it has.

    An option is its name, or its name and "" for a value.
    """
    found: dict[str, list[list[str]]] = {}
    for words, parser in _parsers(cli.parser(), ()):
        found[" ".join(words)] = [
            [*action.option_strings[-1:], *([] if action.nargs == 0 else [""])]
            for action in parser._actions
            if "--help" not in action.option_strings
        ]
    return found


def _parsers(
    parser: argparse.ArgumentParser, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not inner:
        yield words, parser
    for action in inner:
        for name, each in action.choices.items():
            yield from _parsers(each, (*words, name))


def _arguments() -> SearchStrategy[list[str]]:
    return st.deferred(lambda: st.sampled_from(sorted(_commands()))).flatmap(
        lambda command: st.lists(
            st.tuples(st.sampled_from(_commands()[command] or [[""]]), texts(*WORDS)),
            max_size=5,
        ).map(
            lambda options: [
                *command.split(),
                *(word or text for words, text in options for word in words),
            ]
        )
    )


def _check_arguments(arguments: Case) -> None:
    given = [each.replace("\0", "") for each in arguments]
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        if arguments[0] in QUICK:
            code = cli.main([*given, *UNREACHABLE])
            assert code in range(6), f"exit code {code}"
        else:
            with contextlib.suppress(SystemExit):
                cli.parser().parse_args(given)
    assert "Traceback" not in errors.getvalue()


# Settings and addresses of brokers.


def _settings() -> SearchStrategy[list[Any]]:
    kinds = {"broker": BROKERS, "topic": TOPICS, "group": GROUPS}
    names = [(kind, name) for kind, known in kinds.items() for name in sorted(known)]
    values = texts("true", "1", "compact", "delete", ",", "-1", "earliest", max_parts=3)
    return st.tuples(st.sampled_from(names), values).map(
        lambda drawn: [*drawn[0], drawn[1]]
    )


def _check_settings(case: Case) -> None:
    _, options = virtual_time.backend("asyncio")
    with contextlib.suppress(ValueError, RequestError):
        anyio.run(_set, *case, backend="asyncio", backend_options=options)


async def _set(kind: str, name: str, value: str) -> None:
    given = {kind: {name: value}}
    async with EmbeddedBroker(
        listen=False, settings=given.get("broker"), topics={"orders": 1}
    ) as broker:
        broker.set_group_config("billing", given.get("group", {}))
        broker.create_topic("invoices", config=given.get("topic", {}))
        broker.produce("invoices", [b"v"])


def _check_address(text: Case) -> None:
    for parse, error in (
        (parse_bootstrap, ConfigurationError),
        (check_offset_reset, ConfigurationError),
        (parse_address, ValueError),
    ):
        with contextlib.suppress(error):
            parse(text)


# Lines of records.


def _lines() -> SearchStrategy[bytes]:
    fields = (
        '{"key": "k", "value": "v", "headers": {"trace": "1"}, "timestamp": 17642016}',
        '{"value": {"hex": "00ff"}, "headers": [{"name": "a", "value": null}]}',
        '"value": null',
        '"timestamp": ',
        "[" * 3000,
        "{",
        "}",
        "NaN",
        "h:1,i:2\tkey\tvalue",
        "orders,0,5\n",
        "billing,orders,0,",
        '"orders,0,5',
    )
    written = texts(*fields, max_parts=4).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    )
    return written | changed(st.sampled_from(fields).map(str.encode))


LINE_PROPERTIES: Final = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from(("true", "false", ",", "::", "\t", "null"))
        for name in PROPERTIES
    },
)


def _check_lines(case: Case) -> None:
    line, properties, timestamp = case
    with contextlib.suppress(LineError):
        parse_json_line(line)
    with contextlib.suppress(LineError, ConfigurationError):
        LineFormat.from_properties(properties).parse(line)
    with tempfile.NamedTemporaryFile() as file:
        file.write(line)
        file.flush()
        with contextlib.suppress(OffsetsFileError):
            read_offsets(file.name, "billing")
    _check_shown(line, timestamp)


def _check_shown(data: bytes, timestamp: int) -> None:
    """Check what commands show of a record."""
    format_time(timestamp)
    for name in ("text", "json", "hex"):
        format_bytes(data, name)
        json_value(data, name)
    for name in NAMES:
        for part in (data, data[:1], data[:2], data[:4], data[:8]):
            with contextlib.suppress(DeserializeError):
                find_deserializer(name)(part)


def _target(
    name: str,
    cases: SearchStrategy[Any],
    check: Callable[[Case], None],
    *modules: str,
    examples: int,
) -> Target:
    return Target(
        name=name, cases=cases, check=check, modules=modules, examples=examples
    )


TARGETS: Final = (
    _target("properties", _properties(), _check_properties, "properties", examples=60),
    _target("arguments", _arguments(), _check_arguments, "cli", examples=40),
    _target(
        "settings", _settings(), _check_settings, "testing.broker.settings", examples=80
    ),
    _target(
        "addresses",
        texts(
            "localhost",
            ":",
            "9092",
            "[",
            "]",
            "::1",
            "://",
            ",",
            "%",
            "by_duration:PT",
            max_parts=5,
        ),
        _check_address,
        "config.validation",
        "testing.broker.addresses",
        examples=200,
    ),
    _target(
        "lines",
        st.tuples(_lines(), LINE_PROPERTIES, integers(64)),
        _check_lines,
        "cli.produce.json_lines",
        "cli.produce.line_format",
        "cli.groups.offsets_file",
        "cli.record_text",
        "cli.consume.deserializers",
        examples=200,
    ),
)
