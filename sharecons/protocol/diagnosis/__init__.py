"""Diagnosis: why a share-partition makes no progress.

Read `offset_states` (the state of each offset), `state_replay` (states from the records
of share coordinators), `findings` (reasons and advice), `checks` (the result of
a check), `preflight` (is the cluster ready for share groups?), `internal_topics` (can
coordinators store the state of groups?), `dead_letters` (can the brokers write a
group's dead letters?).
"""
