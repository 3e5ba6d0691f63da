"""Decides what a producer sends; no I/O. `sharecons.producer` runs it.

- `messages`: the requests and responses.
- `partitioner`: chooses the partition of a record.
- `batches`: the records of one partition: pending, and in the batch that is sent.
- `topics`: the partitions of one topic.
- `errors`: why a record is not confirmed.
- `producer`: the state machine.
"""
