"""Configuration: validated arguments, TLS and SASL, and Kafka's properties files.

`settings` loads a configuration, `security` holds TLS and SASL, `validation` checks
arguments. The package `properties` reads Kafka's properties files.
"""
