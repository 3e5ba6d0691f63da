"""The consumer: joins a share group, buffers leases, and hands out their records.

Read `share_consumer` (the public class), `lifecycle` (start and close), `iterators` and
`receive` (the loops), `delivery_queue` (the buffer of leases), `implicit_acks`,
`deserializers`. `group_setup` checks the cluster before the consumer joins.
"""
