"""Client telemetry (KIP-714): when a client requests subscriptions and pushes metrics.

`messages` are the requests and responses, `push_cycle` is the state machine, with the
table of errors.
"""
