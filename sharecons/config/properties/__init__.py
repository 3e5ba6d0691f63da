"""Kafka's properties files, as far as they configure connections and security.

`files` reads one file, `sources` merges several, `known_properties` finds misspelled
names, `errors` reports an invalid property. `security` and `credentials` make TLS and
SASL of them, with `jaas`, `tokens`, `stores` and `pkcs12`.
"""
