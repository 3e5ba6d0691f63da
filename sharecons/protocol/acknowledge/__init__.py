"""Acknowledgements, from a record's verb to the broker's result.

`leases` holds the records that one response acquired, `lock_scope` their session,
`ack_states` the state of each, `ranges` and `archived` sets of offsets. `ack_batches`
and `linger` decide what is sent together and when, `batcher` is the acknowledgement
batcher of one leader. `result_log`, `results` and `verb_errors` report; `redeliveries`
pauses partitions whose records are released again and again.
"""
