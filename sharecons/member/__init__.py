"""One member of a share group: joins it, fetches, acknowledges, reports errors, leaves.

`share_source` is the core below consumer, worker, taskiq and Spark, by the interface in
`record_source`. `source_options` and `settings` have what it is made from, and
`lifecycle` starts and closes it. `group_start` connects, `group_setup` checks the
cluster before the member joins, `group_type` the group, and `skipped_records` counts
what a new group never receives.

`member_tasks` runs the state machines of `sharecons.protocol`: `drive` runs one
machine, `leader_tasks` one per partition leader, `coordinator_connection` sends
heartbeats, `ack_dispatcher` passes on the results of acknowledgements. `lease_buffer`
receives all events, and holds leases until they are delivered;
`pausable_buffer` withholds paused topics, `lease_decoder` decodes them, `record_taker`
takes their records in one task, `lock_keeper` renews their locks, and `unprocessed`
counts what remains. `group_configs` follows the configs of the group. `telemetry`
pushes metrics to brokers. `stored_error` is what ended the member. `source_health`
shows its state in public classes. `error_reports`, `archive_warnings`, `member_log`,
`fetch_problems` and `unassigned_watch` report.
"""
