"""Parsing and checking of options."""

import pickle

import pytest

from sharecons.errors import ConfigurationError
from sharecons.properties import consumer_properties
from sharecons.spark.options import load_security, read_options
from sharecons.spark.units import parse_duration

NEEDED = {
    "kafka.bootstrap.servers": "localhost:9092",
    "subscribe": "orders",
    "kafka.share.group.id": "billing",
    "ledgerLocation": "/ledgers/billing",
}


def error_of(streaming=True, without=(), **more):
    given = {name: value for name, value in NEEDED.items() if name not in without}
    with pytest.raises(ConfigurationError) as caught:
        read_options(given | more, streaming=streaming)
    return str(caught.value)


def test_required_options_are_sufficient():
    options = read_options(NEEDED)

    assert options.bootstrap_servers == "localhost:9092"
    assert options.topics == ("orders",)
    assert options.group_id == "billing"
    assert options.ledger_location == "/ledgers/billing"
    assert options.fail_on_data_loss is True
    assert options.include_headers is False


def test_case_of_names_is_ignored():
    options = read_options(
        {name.lower(): value for name, value in NEEDED.items()}
        | {"MAXOFFSETSPERTRIGGER": "500", "failondataloss": "False"}
    )

    assert options.max_offsets_per_trigger == 500
    assert options.fail_on_data_loss is False


@pytest.mark.parametrize("name", NEEDED)
def test_missing_required_option_is_named(name):
    text = error_of(without=[name])

    assert text.startswith(f"{name} is missing: ")


@pytest.mark.parametrize(
    ("given", "attribute", "read"),
    [
        ({"subscribe": "a, b,c"}, "topics", ("a", "b", "c")),
        ({"includeHeaders": "true"}, "include_headers", True),
        ({"minPartitions": "8"}, "min_partitions", 8),
        ({"batchEnds": '{"4f": [10, 20]}'}, "batch_ends", {"4f": [10, 20]}),
        ({"maxRecordsPerPartition": "10"}, "max_records_per_partition", 10),
        ({"maxBytesPerTrigger": "100"}, "max_bytes_per_trigger", 100),
        ({"maxBytesPerTrigger": "10 MB"}, "max_bytes_per_trigger", 10 << 20),
        ({"maxBytesPerTrigger": "1g"}, "max_bytes_per_trigger", 1 << 30),
        ({"maxOffsetsAhead": "10"}, "max_offsets_ahead", 10),
        ({"kafka.request.timeout.ms": "1500"}, "request_timeout", 1.5),
        ({"kafka.fetch.max.wait.ms": "100"}, "max_wait", 0.1),
        ({"kafka.max.poll.records": "100"}, "max_records", 100),
        ({"kafka.client.rack": "b"}, "client_rack", "b"),
        ({"kafka.enable.metrics.push": "false"}, "enable_metrics_push", False),
        ({"kafka.share.auto.offset.reset": "earliest"}, "offset_reset", "earliest"),
        ({"kafka.security.protocol": "plaintext"}, "client_id", "sharecons-spark"),
        ({"idleTimeout": "3s"}, "idle_timeout", 3.0),
        ({"ledger.anon": "true"}, "ledger_options", {"anon": True}),
    ],
)
def test_option_is_parsed(given, attribute, read):
    assert getattr(read_options(NEEDED | given), attribute) == read


@pytest.mark.parametrize(
    "name",
    [
        "assign",
        "startingOffsets",
        "endingOffsets",
        "startingTimestamp",
        "kafka.group.id",
        "kafka.auto.offset.reset",
        "kafka.isolation.level",
        "kafka.enable.auto.commit",
        "kafka.value.deserializer",
    ],
)
def test_unsupported_option_is_rejected_with_a_reason(name):
    text = error_of(**{name.lower(): "anything"})

    assert text.startswith(f"{name} is not supported: ")
    assert len(text) > len(name) + 60


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("topic", "name the topics in subscribe"),
        ("topics", "name the topics in subscribe"),
        ("path", "load() takes no path; name the topics in subscribe"),
        ("group.id", "set the share group with kafka.share.group.id"),
        ("checkpointLocation", "it belongs to the query: set it on writeStream"),
    ],
)
def test_option_of_another_place_is_rejected_with_its_place(name, instead):
    text = error_of(**{name.lower(): "anything"})

    assert text == f"{name} is not supported: {instead}"


@pytest.mark.parametrize(
    "table",
    [
        consumer_properties.ARGUMENTS,
        consumer_properties.REFUSED,
        consumer_properties.WITHOUT_EFFECT,
    ],
)
def test_each_property_of_kafkas_consumers_is_an_option_or_refused_with_a_reason(table):
    for name in table:
        text = reason_to_refuse(f"kafka.{name}")
        assert text is None or f"kafka.{name}" in text
        assert "is not an option" not in (text or "")


def reason_to_refuse(name):
    """Return the error for an option with a plausible value; None if it is accepted."""
    try:
        read_options(NEEDED | {name: "500"})
    except ConfigurationError as error:
        return str(error)
    return None


@pytest.mark.parametrize("text", ["20", "[20]", '{"4f": 20}', '{"4f": ["x"]}', "{"])
def test_batch_ends_are_positions_by_ledger(text):
    assert "batchEnds must be positions by the id" in error_of(batchEnds=text)


def test_pattern_replaces_the_names_of_topics():
    given = {name: text for name, text in NEEDED.items() if name != "subscribe"}
    options = read_options(given | {"subscribePattern": r"orders\..*"})

    assert options.topic_pattern == r"orders\..*"
    assert options.topics == ()
    assert "subscribe and subscribePattern" in error_of(subscribePattern="a")
    assert "regular expression" in error_of(without=["subscribe"], subscribePattern="(")


def test_unknown_option_is_rejected_with_a_suggestion():
    assert error_of(maxOffsetPerTrigger="5") == (
        "maxOffsetPerTrigger is not an option of sharegroup; did you mean "
        "maxOffsetsPerTrigger?"
    )
    assert error_of(colour="red") == "colour is not an option of sharegroup"
    assert "not an option" in error_of(**{"kafka.linger.ms": "5"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("includeHeaders", "yes"),
        ("failOnDataLoss", ""),
        ("minPartitions", "0"),
        ("maxOffsetsPerTrigger", "-1"),
        ("maxOffsetsPerTrigger", "many"),
        ("maxBytesPerTrigger", "0k"),
        ("maxBytesPerTrigger", "1p"),
        ("kafka.request.timeout.ms", "1.5"),
        ("kafka.request.timeout.ms", "0"),
        ("kafka.fetch.max.wait.ms", "3600001"),
        ("kafka.fetch.max.bytes", "3000000000"),
        ("kafka.max.poll.records", "3000000000"),
        ("maxTriggerDelay", "soon"),
        ("subscribe", " , "),
        ("subscribe", "a,a"),
        ("ledgerLocation", " "),
        ("kafka.bootstrap.servers", "localhost"),
        ("kafka.share.auto.offset.reset", "first"),
        ("kafka.security.protocol", "TLS"),
        ("subscribe", "a b"),
        ("kafka.share.group.id", "a\udcff"),
        ("kafka.client.id", "a" * 32768),
        ("kafka.client.rack", "\ud800"),
    ],
)
def test_invalid_value_is_rejected(name, value):
    text = error_of(**{name: value})

    assert name in text


LOGIN = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule "
    'required username="alice" password="alice-Secret";',
}


def test_security_is_read_from_kafka_properties():
    options = read_options(NEEDED | LOGIN)

    security = load_security(options.security)
    assert security.protocol == "SASL_PLAINTEXT"
    assert security.credentials.username == "alice"
    assert security.credentials.password == "alice-Secret"
    assert load_security(read_options(NEEDED).security) is None


def test_repr_of_options_hides_secrets():
    options = read_options(NEEDED | LOGIN | {"ledger.key": "ledger-Secret"})

    assert "Secret" not in repr(options)


def test_tasks_get_credentials_of_the_brokers_only():
    pytest.importorskip("pyspark", reason="needs sharecons[spark]")
    from sharecons.spark.tasks import options_for_tasks

    options = read_options(NEEDED | LOGIN | {"ledger.key": "ledger-Secret"})

    given = pickle.loads(pickle.dumps(options_for_tasks(options)))

    assert given.security == options.security
    assert given.ledger_options == {}


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"kafka.sasl.mechanism": "PLAIN"},
            "kafka.security.protocol is missing: kafka.sasl.mechanism has no "
            "effect without it; set SSL, SASL_PLAINTEXT or SASL_SSL",
        ),
        (
            {
                "kafka.security.protocol": "SSL",
                "kafka.ssl.truststore.location": "/not/here.pem",
            },
            "kafka.ssl.truststore.location: /not/here.pem: No such file or directory",
        ),
        (
            LOGIN | {"kafka.sasl.jaas.config": 'x required username="alice";'},
            "kafka.sasl.password: missing: SCRAM-SHA-512 needs it, or password in "
            "sasl.jaas.config",
        ),
        (
            LOGIN | {"kafka.sasl.mechanizm": "PLAIN"},
            "kafka.sasl.mechanizm is not an option of sharegroup; did you mean "
            "kafka.sasl.mechanism?",
        ),
    ],
)
def test_invalid_security_is_rejected(more, text):
    assert error_of(**more) == text


def test_contradictory_limits_are_rejected():
    text = error_of(minOffsetsPerTrigger="10", maxOffsetsPerTrigger="5")

    assert text == "minOffsetsPerTrigger (10) is more than maxOffsetsPerTrigger (5)"
    assert "minOffsetsPerTrigger" in error_of(maxTriggerDelay="1m")


def test_positions_are_for_batches_only():
    given = {"startingPosition": "5", "endingPosition": "9"}

    assert "spark.read" in error_of(**given)
    options = read_options(NEEDED | given, streaming=False)
    assert (options.starting_position, options.ending_position) == (5, 9)


def test_load_id_is_for_batches_that_acquire():
    assert "loadId is for spark.read" in error_of(loadId="monday")
    both = {"loadId": "monday", "startingPosition": "5", "endingPosition": "9"}
    assert "endingPosition acquires nothing" in error_of(streaming=False, **both)
    assert read_options(NEEDED | {"loadId": "monday"}, streaming=False).load_id == (
        "monday"
    )


@pytest.mark.parametrize("start", ["10", "new", "-1", "latest"])
def test_invalid_positions_are_rejected(start):
    text = error_of(streaming=False, startingPosition=start, endingPosition="9")

    assert "startingPosition" in text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15m", 900), ("500ms", 0.5), ("30 s", 30), ("2H", 7200), ("250", 0.25)],
)
def test_durations_use_sparks_notation(text, seconds):
    assert parse_duration("x", text) == seconds
