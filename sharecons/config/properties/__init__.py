"""Kafka's properties files, as far as they configure connections and security.

`files` reads one file, `sources` merges several, `known_properties` rejects unknown
names, `errors` says where a property came from. `security` and `credentials` make TLS
and SASL of them, with `jaas`, `tokens`, `stores` and `pkcs12`.
"""
