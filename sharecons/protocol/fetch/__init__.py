"""Fetching from one partition leader with ShareFetch and ShareAcknowledge.

`leader` is the state machine. `fetch_control` decides about fetches, and returns a
`fetch_plan`: the amount comes from `prefetch`, `batch_sizes`, `byte_limit` and
`transfer_limit`, the partitions from `fetchable_partitions` and `partition_rotation`,
the wait at the broker from `max_wait` and `arrival_rate`. `demand` is what the user of
a member wants, and `handler_pace` how fast a worker is. `fetch_pauses`,
`empty_responses` and `quota` delay fetches. `settings` are the application's.
`session_manager` has the epochs and partitions of the share session, `start_offsets`
fixes where a new group starts, `request_builder` fills in requests, `request_pause`
delays them. `response_handler` handles responses, with the `events` that result,
`error_events` for errors; `retried_errors` are errors that the application does not
receive.

Theory of operation
-------------------
A leader has one request in flight. A fetch that waits at the broker blocks its session,
and an acknowledgement on another connection would end it with an error and cost a
delivery (measured on 4.3.0). So a fetch waits long only if no other request is expected
meanwhile.

If more records are available than a fetch returned, the next fetch is sent while the
application processes these. If not, it is sent when the application requests records:
it then carries the acknowledgements of these, and can wait long, or until several
records are there. Before the first one, `start_offsets` fetches new partitions without
records.

Acknowledgements are sent with a fetch that is due, or alone; `AckLinger` decides when.
Renewals are sent alone, as Kafka does not allow them to fetch (KIP-1222). A session
opens with a fetch, and ends with an acknowledgement.

An error code that shows that the epochs do not match opens another session, under which
the member still has its locks. A lost connection, and a session that the broker no
longer knows, end all locks: acknowledgements in flight then have an unknown result, and
are not sent again.
"""
