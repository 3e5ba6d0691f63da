"""Kafka's properties files: connections, security, and share consumers.

`files` reads one file, `sources` merges several, `known_properties` finds misspelled
names, `errors` reports an invalid property. `security` and `credentials` make TLS and
SASL of them, with `jaas`, `tokens`, `stores` and `pkcs12`. `consumer_properties` makes
arguments of a consumer.
"""

from collections.abc import Mapping
from os import PathLike

__all__ = ["Properties"]

Properties = str | PathLike[str] | Mapping[str, str]
"""The path of a properties file, or properties by name."""
