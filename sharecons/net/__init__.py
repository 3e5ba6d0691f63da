"""The network: connections to brokers.

`settings` has the options of every client. Read `connection`, `cluster` and
`connect_attempts` (the way to a broker). `outages` and `problem_log` report.
`background` owns tasks. `admin_executor` and `broker_pool` serve administration,
`log_offsets` looks up offsets, `topics` describes and creates topics. `io` has sockets
and event loops.
"""
