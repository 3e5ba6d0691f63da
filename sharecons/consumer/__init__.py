"""The consumer: joins a share group, buffers leases, and returns their records.

`share_consumer` is the public class, `lifecycle` starts and closes it, `group_setup`
checks the cluster before it joins. The loops are in `iterators`, `receive` and
`polling`; `readers` and `delivery_queue` share records between them, with
`ready_queue`, `decoding` and `deserializers`; `implicit_acks` accepts records,
`stored_error` is what ended the consumer.
"""
