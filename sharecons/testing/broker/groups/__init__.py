"""Groups: classic groups and share groups have one name space.

Requests are handled above: group_checks.py, group_commits.py, handlers/.
"""
