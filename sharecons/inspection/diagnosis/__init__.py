"""Diagnosis: why a share-partition makes no progress. No I/O.

Read `offset_states` (the status of each offset), `findings` (reasons and advice),
`checks` (the result of a check), `preflight` (is the cluster ready for share groups?),
`internal_topics` (can coordinators store the state of groups?), `dead_letter_checks`
(can the brokers write a group's dead letters?).
"""
