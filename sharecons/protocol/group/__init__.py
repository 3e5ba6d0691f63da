"""Membership of a share group.

`heartbeat` joins, sends heartbeats and leaves, with `states`, `subscription`,
`heartbeat_interval`, `heartbeat_status` and `rejections`; `metadata` knows topic ids
and partition leaders. `messages` are the requests and responses of both,
`config_messages` read and change configs of the group. `unassigned` finds why a member
has no partitions.
"""
