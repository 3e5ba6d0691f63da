"""The consumer: joins a share group, buffers leases, and returns their records.

`share_consumer` is the public class, `lifecycle` starts and closes it, `acknowledging`
acknowledges by offset, `health` shows its state in the group, `pausing` pauses topics,
`from_properties` reads a file of settings. `group_start` connects, `group_setup` checks
the cluster before it joins, `group_type` the group, and `skipped_records` counts what a
new group never receives; `assignment` waits for partitions. The loops are in
`iterators`, `receive` and `polling`; `delivery_queue` holds the leases,
`pausable_queue` withholds the leases of paused topics, `readers` decides which loop
gets records and accepts them implicitly, `deserializers` decodes them, `unprocessed`
reports records without a loop. `stored_error` is what ended the consumer.
`worker_access` is for `sharecons.worker`.
"""
