"""Configuration: checked arguments, security, and Kafka's properties files.

Read `settings` (where a configuration comes from), `security` (TLS and SASL),
`validation` (checks of arguments), then `properties`.
"""
