"""Configuration: validated arguments, TLS and SASL.

`security` holds TLS and SASL, `validation` checks arguments, `callables` checks
functions, `not_given` is a default other than None. `options` makes the entries of
options, in the settings of each client. The package `properties` reads Kafka's
properties files.
"""
