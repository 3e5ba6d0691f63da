"""Fetching from one partition leader with ShareFetch and ShareAcknowledge.

`leader` is the state machine. `fetch_control` decides about fetches: when, which
partitions, how much; `prefetch` and `pauses` are its parts. `demand` is what the user
of a member wants, and `handler_pace` how fast a worker is. `session_manager` has the
epochs and partitions of the share session, `start_offsets` fixes where a new group
starts, `request_builder` fills in requests, `request_pause` delays them, and `events`
handles responses; `retried_errors` are errors that the application does not receive.
"""
