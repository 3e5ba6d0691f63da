"""Handlers for records: concurrency, retries and dead letters.

Not complete yet, and so not exported by `sharecons`.

- `share_worker`: runs the handlers.
- `dead_letters`: writes the records that are given up.
- `dead_letter_headers`: the headers of dead letters.
- `outcomes`: the outcomes of a record, and the exceptions by which a handler decides.
- `renewals`: when locks are renewed, and when they are lost.
- `retry_policy`: when a failed record is tried again, and when it is given up.
- `scheduler`: which record is processed next, and how many are taken.
- `window`: whether a failed record can wait without stalling its partition.
"""
