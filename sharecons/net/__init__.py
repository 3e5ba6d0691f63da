"""The network: runs the state machines of `sharecons.protocol` on real connections.

Read `member` (one member of a share group), `driver` (runs one machine), `leader_tasks`
and `leader_io` (the partition leaders), `cluster`, `connect_attempts` and `connection`
(the way to a broker). `ack_dispatch`, `error_reports`, `archive_warnings`, `outages`
and `log_messages` report; `background` owns the tasks, `loop_guard` rejects calls from
elsewhere. `admin_executor` and `broker_pool` serve administration. `io` has the bytes.
"""
