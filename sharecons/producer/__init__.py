"""Writes records: runs the state machine of `sharecons.protocol.produce`.

- `idempotent`: sends the machine's requests, and reports the outcome of each record.
"""
