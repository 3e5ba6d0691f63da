"""Configuration: validated arguments, TLS and SASL, and Kafka's properties files.

`settings` loads a configuration, `security` holds TLS and SASL, `validation` checks
arguments, `callables` checks functions, `not_given` is a default other than None.
`options` makes the entries of options, in the settings of each client. The
package `properties` reads Kafka's properties files; `member_arguments` makes arguments
of a consumer or a worker of one.
"""
