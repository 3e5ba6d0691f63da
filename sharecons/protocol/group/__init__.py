"""Membership of a share group.

Read `heartbeat` (joining, heartbeats, leaving), `subscription`, `rejections`, then
`metadata` (topic ids and partition leaders).
"""
