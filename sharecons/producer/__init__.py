"""Writes records, for applications and for the retries and dead letters of a worker.

- `client`: `Producer`, the public class.
- `settings`: its options.
- `records`: the records of an application, and where they were written.
- `lifecycle`: starts and closes a producer.
- `idempotent`: sends the requests of the state machine of `sharecons.protocol.produce`,
  and reports the outcome of each record.
"""
