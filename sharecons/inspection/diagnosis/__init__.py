"""Diagnosis: why a share-partition makes no progress. No I/O.

Read `offset_states` (the status of each offset), `group_facts` (the group's settings
and members), `finding` and `findings` (reasons and advice), `formats` (texts of numbers
and times), `checks` (the result of a check), `preflight` (is the cluster ready for
share groups?), `internal_topics` (can coordinators store the state of groups?),
`dead_letter_checks` (can the brokers write a group's dead letters?),
`copy_topic_checks` (do a worker's topics keep the copies of records?).
"""
