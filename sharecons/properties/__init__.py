"""Kafka's properties files, as arguments of consumers, workers and other clients.

`arguments` has the public functions, `settings` the settings of the command line.
`files` reads one file, `sources` merges several, `errors` reports an invalid property.
`known_properties` has the names of connections, and finds misspelled ones;
`consumer_properties` has the names of Java's consumers. `security` and `credentials`
make TLS and SASL of properties, with `jaas`, `tokens`, `stores` and `pkcs12`.
"""
