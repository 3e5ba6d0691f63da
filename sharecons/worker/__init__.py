"""Handlers for records: concurrency, retries and dead letters.

- `outcomes`: what becomes of a record, and the exceptions by which a handler decides.
- `retry_policy`: when a failed record is tried again, and when it is given up.
"""
