"""Converting the offsets of a consumer group to a share group's, and back.

Read `models`, then `offset_migration`.
"""
