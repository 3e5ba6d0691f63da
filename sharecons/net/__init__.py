"""The network: runs the state machines of `sharecons.protocol` on real connections.

Read `member` (one member of a share group), `driver` (runs machines, and one per
partition leader), `connection`, `cluster` and `connect_attempts` (the way to a
broker). `error_reports`, `archive_warnings`, `member_log`, `outages`, `fetch_problems`,
`unassigned_watch`, `problem_log` and `log_messages` report; `group_configs` follows the
configs of the group. `background` owns the tasks. `admin_executor` and `broker_pool`
serve administration, `log_offsets` looks up offsets. `io` has sockets and event loops.
"""
