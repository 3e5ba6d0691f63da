"""Membership of a share group.

`heartbeat` joins, sends heartbeats and leaves, with `states`, `subscription`,
`heartbeat_status` and `rejections`; `metadata` knows topic ids and partition leaders.
`unassigned` finds why a member has no partitions.
"""
