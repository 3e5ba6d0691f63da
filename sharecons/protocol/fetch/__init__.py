"""Fetching from one partition leader with ShareFetch and ShareAcknowledge.

`leader` is the state machine, `session_manager` counts session epochs,
`request_builder` and `response_handler` make requests and read responses, `events` are
what responses lead to. `prefetch`, `batch_sizes`, `quota`, `max_wait`, `arrival_rate`,
`partition_rotation`, `pauses` and `empty_responses` decide when to fetch, how much, and
which partitions.
"""
