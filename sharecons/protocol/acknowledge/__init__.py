"""Acknowledgements, from a record's verb to the broker's result.

`leases` holds the records that one response acquired, `lease_owner` what they call,
`lock_scope` their session, `lock_times` when their locks end, `record_offsets` their
offsets, `ack_states` the state of each; `delivered_leases` finds a record by its
offset, `delayed_releases` decides when records with a delay are renewed and released.
`runs` are adjacent offsets with one type, `ranges` the form in which they are sent.
`batcher` is the acknowledgement batcher of one leader; `ack_batches` decides what is
sent together, `linger` how long it waits. `result_log`, `results`, `commit_waiter`,
`archived`, `ack_errors` and `positions` report; `redeliveries` pauses partitions whose
records are released again and again; `redelivered_leases` protects records that were
acquired again from late acknowledgements; `damaged_records` are released once.
`renewals` decides when locks of held records are renewed.
"""
