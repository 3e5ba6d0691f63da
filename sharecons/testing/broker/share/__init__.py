"""Share groups (KIP-932): members, share sessions, share partitions.

Requests are handled above: share_requests.py, share_lookup.py, handlers/.
"""
