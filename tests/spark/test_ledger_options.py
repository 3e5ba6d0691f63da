"""Values of `ledger.*` options, and their use by the filesystem."""

import json
import traceback

import pytest

from sharecons.errors import ConfigurationError
from sharecons.spark.ledger_options import hide_secrets, parse_ledger_option
from sharecons.spark.options import read_options
from sharecons.spark.storage import open_storage
from tests.spark.test_options import NEEDED


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        (" true ", True),
        ("123", 123),
        ("-5", -5),
        ("0.25", 0.25),
        ('"123"', "123"),
        ('"true"', "true"),
        ("[1, null]", [1, None]),
        (
            '{"endpoint_url": "http://store:9000", "useSSL": false}',
            {"endpoint_url": "http://store:9000", "useSSL": False},
        ),
        ("eu-central-1", "eu-central-1"),
        # Text, possibly secrets.
        ("00123", "00123"),
        ("1e5", "1e5"),
        ("1" * 19, "1" * 19),
        (" spaced ", " spaced "),
        ("null", "null"),
        ("inf", "inf"),
    ],
)
def test_option_value_is_json_or_text(text, value):
    parsed = parse_ledger_option("ledger.x", text)

    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    "text", ['{"secret": s3cret}', '["s3cret', '"s3cret', "[" * 100_000]
)
def test_invalid_json_is_rejected_without_showing_it(text):
    with pytest.raises(ConfigurationError) as caught:
        read_options(NEEDED | {"ledger.client_kwargs": text})

    assert str(caught.value).startswith("ledger.client_kwargs begins like JSON")
    shown = "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in shown
    assert len(shown) < 10_000


@pytest.fixture
def store():
    """The file system class of `memory:` URLs, which records its arguments."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.get_filesystem_class("memory")

    class Recording(memory):
        arguments = None

        def __init__(self, **options):
            Recording.arguments = options
            if "secret" in options:
                raise ValueError(f"no account for {options['secret']} in {options}")
            super().__init__()

    fsspec.register_implementation("memory", Recording, clobber=True)
    yield Recording
    fsspec.register_implementation("memory", memory, clobber=True)


def test_filesystem_is_created_with_the_parsed_options(store):
    inner = {"endpoint_url": "http://store:9000", "maxAttempts": 3}
    options = read_options(
        NEEDED
        | {
            "ledgerLocation": "memory://bucket/ledger",
            "ledger.anon": "true",
            "ledger.client_kwargs": json.dumps(inner),
            "ledger.key": '"123"',
        }
    )
    open_storage(options.ledger_location, options.ledger_options)

    assert store.arguments == {"anon": True, "client_kwargs": inner, "key": "123"}


def test_filesystem_error_is_shown_without_secrets(store):
    given = {"secret": "s3cret-key", "client_kwargs": {"aws_token": "s3cret"}}

    with pytest.raises(ConfigurationError) as caught:
        open_storage("memory://bucket/ledger", given)

    assert "no account for ***" in str(caught.value)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_hide_secrets_keeps_other_values():
    options = {"region": "north", "account_key": "abc", "nested": {"token": "abcdef"}}

    assert hide_secrets("abcdef and abc in north", options) == "*** and *** in north"
