"""Acknowledgements, from a record's verb to the broker's result.

Read `leases` (the acquired records of one response), `ack_states` (the state of each),
`ack_batches` and `linger` (what is sent together, and when), `batcher` (the
acknowledgement batcher of one leader), `result_log` and `results`.
"""
