"""Fetching from one partition leader with ShareFetch and ShareAcknowledge.

`leader` is the state machine. `fetch_control` decides about fetches, and returns a
`fetch_plan`: the amount comes from `prefetch`, `byte_limit` and `transfer_limit`, the
partitions from `fetchable_partitions` and `partition_rotation`, the wait at the broker
from `max_wait` and `arrival_rate`. `demand` is what the user of a member wants, and
`handler_pace` how fast a worker is. `fetch_pauses`, `empty_responses` and `quota` delay
fetches. `settings` are the application's. `session_manager` has the epochs and
partitions of the share session, `start_offsets` fixes where a new group starts,
`request_builder` fills in requests, `request_pause` delays them. `response_handler`
handles responses, with the `events` that result, `error_events` for errors;
`retried_errors` are errors that the application does not receive.
"""
