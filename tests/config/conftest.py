"""A real Kafka with TLS and SASL listeners, and certificates."""

from dataclasses import dataclass

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from sharecons.testing.kafka import KafkaCluster
from tests.config.authority import Authority
from tests.kafka_plugin import VERSION, Admin

NAME = "alice"
PASSWORD = 'alice-secret;="\\ x'
MODULE = "org.apache.kafka.common.security"
LISTENERS = {
    "NAMED": "SASL_PLAINTEXT",
    "NAMEDTLS": "SASL_SSL",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "SHORT": "SASL_PLAINTEXT",
}


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority.new(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    """An authority that the other side does not trust."""
    return Authority.new(tmp_path_factory.mktemp("certificates"))


@dataclass(frozen=True)
class SecureKafka:
    cluster: KafkaCluster
    admin: Admin

    def at(self, listener):
        return self.cluster.listener(listener)


@pytest.fixture(scope="session")
def secure_kafka(authority):
    config = dict(_sasl("NAMED") + _sasl("NAMEDTLS") + _sasl("SHORT"))
    config |= dict(_tls("NAMEDTLS", authority) + _tls("TLS", authority))
    config |= dict(_tls("MUTUAL", authority))
    config["listener.name.mutual.ssl.client.auth"] = "required"
    for mechanism in ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer"):
        name = f"listener.name.short.{mechanism}.connections.max.reauth.ms"
        config[name] = "3000"
    with KafkaCluster(VERSION, config=config, listeners=LISTENERS) as cluster:
        _add_scram_user(cluster.bootstrap_servers)
        yield SecureKafka(cluster, Admin(cluster.bootstrap_servers))


def quote_jaas(text):
    """Return the text as a quoted value in a JAAS configuration."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _sasl(listener):
    prefix = f"listener.name.{listener.lower()}"
    claim = 'unsecuredLoginStringClaim_sub="broker"'
    modules = {
        "plain": f"plain.PlainLoginModule required user_{NAME}={quote_jaas(PASSWORD)};",
        "scram-sha-256": "scram.ScramLoginModule required;",
        "scram-sha-512": "scram.ScramLoginModule required;",
        "oauthbearer": f"oauthbearer.OAuthBearerLoginModule required {claim};",
    }
    mechanisms = ",".join(name.upper() for name in modules)
    return [
        (f"{prefix}.sasl.enabled.mechanisms", mechanisms),
        *(
            (f"{prefix}.{name}.sasl.jaas.config", f"{MODULE}.{module}")
            for name, module in modules.items()
        ),
    ]


def _tls(listener, authority):
    prefix = f"listener.name.{listener.lower()}.ssl"
    key = authority.issue("127.0.0.1", "localhost", stem=f"broker-{listener}")
    return [
        (f"{prefix}.keystore.type", "PEM"),
        (f"{prefix}.keystore.location", str(key)),
        (f"{prefix}.truststore.type", "PEM"),
        (f"{prefix}.truststore.location", str(authority.ca_file)),
    ]


def _add_scram_user(bootstrap_servers):
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    # In two requests: a request can contain a user only once.
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        credential = ScramCredentialInfo(mechanism, 4096)
        upsertion = UserScramCredentialUpsertion(NAME, credential, PASSWORD.encode())
        admin.alter_user_scram_credentials([upsertion])[NAME].result(30)
