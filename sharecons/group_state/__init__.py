"""The state of share groups: read in one way, for inspections, metrics and dashboards.

- `group_states`: the model: groups and their partitions, and what could not be read;
- `offset_states`, `group_facts`: the status of each offset, and the group's limits;
- `assemble`: makes the model from responses; `record_search` finds oldest records;
- `read_groups`: sends the requests for any number of groups, `collector` those for all;
- `polling`: collects at intervals; `reachability` detects that no broker responds;
- `stored_states`, `missing_topics`, `gather`: parts of reading.

`collector` never shows an old value as new: an unread value is None. Its `latest`
keeps earlier values, with their time and the error.
"""
