"""Fetching from one partition leader with ShareFetch and ShareAcknowledge.

Read `leader` (the state machine), `session_manager` (session epochs),
`request_builder`, `response_handler` and `events` (what responses lead to). `prefetch`,
`waits`, `arrivals` and `turns` decide when to fetch, how much, and which partitions.
"""
