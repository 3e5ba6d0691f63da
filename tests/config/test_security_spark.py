"""Spark queries with TLS and SASL: the driver's requests and the workers' reads."""

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from pyspark.errors import PySparkException

from tests.config.conftest import NAME, PASSWORD, quote_jaas
from tests.spark.spark_session import Query, session

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow("Spark starts processes"),
    pytest.mark.filterwarnings("ignore"),
]

COUNT = 200
MODULE = "org.apache.kafka.common.security"
LOGIN = f"{MODULE}.scram.ScramLoginModule required username={quote_jaas(NAME)}"


@pytest.fixture(scope="module")
def spark():
    # Not stopped here: the other Spark tests share it.
    return session()


@pytest.fixture
def topic(secure_kafka):
    topic = secure_kafka.admin.create_topic(partitions=2)
    for partition in (0, 1):
        values = [b"%d" % number for number in range(COUNT // 2)]
        secure_kafka.admin.produce(topic, values, partition=partition)
    return topic


def scram(password=PASSWORD):
    return {
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f"{LOGIN} password={quote_jaas(password)};",
    }


def listeners(authority):
    """Return listener and options by name."""
    trusting = {"kafka.ssl.ca.location": str(authority.ca_file)}
    mine = authority.issue("me@example.org", stem="spark")
    own = {"kafka.ssl.keystore.location": str(mine)}
    named = {"kafka.sasl.username": NAME, "kafka.sasl.password": PASSWORD}
    plain = {"kafka.sasl.mechanism": "PLAIN", **named}
    return {
        "SCRAM": ("NAMED", "SASL_PLAINTEXT", scram()),
        "PLAIN": ("NAMED", "SASL_PLAINTEXT", plain),
        "SCRAM over TLS": ("NAMEDTLS", "SASL_SSL", trusting | scram()),
        "TLS": ("TLS", "SSL", trusting),
        "certificates of both": ("MUTUAL", "SSL", trusting | own),
    }


def secured_query(kafka, topic, base, listener, protocol, more):
    options = {"kafka.security.protocol": protocol, **more}
    return Query(kafka.at(listener), topic, f"g-{topic}", base, **options)


@pytest.mark.parametrize("way", ["SCRAM", "PLAIN", "TLS"])
def test_batch_query_reads_records(
    spark, secure_kafka, authority, topic, tmp_path, way
):
    query = secured_query(secure_kafka, topic, tmp_path, *listeners(authority)[way])

    frame = spark.read.format("sharegroup").options(**query.options).load()

    assert len({(row.partition, row.offset) for row in frame.collect()}) == COUNT


@pytest.mark.parametrize("way", ["SCRAM over TLS", "certificates of both"])
def test_streaming_query_reads_records(
    spark, secure_kafka, authority, topic, tmp_path, way
):
    query = secured_query(secure_kafka, topic, tmp_path, *listeners(authority)[way])

    query.run(spark)

    rows = spark.read.parquet(str(query.out)).select("partition", "offset").collect()
    assert len(rows) == len(set(rows)) == COUNT


def test_wrong_password_is_reported_without_its_value(
    spark, secure_kafka, topic, tmp_path
):
    login = scram("no-such-word")
    query = secured_query(
        secure_kafka, topic, tmp_path, "NAMED", "SASL_PLAINTEXT", login
    )

    with pytest.raises(PySparkException) as caught:
        query.run(spark)

    assert "SCRAM-SHA-512 as 'alice': Authentication failed" in str(caught.value)
    assert "no-such-word" not in str(caught.value)
