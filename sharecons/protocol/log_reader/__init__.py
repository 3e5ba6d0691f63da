"""Reading a log by offset, with plain Fetch.

Read `reader` (ranges of several partitions), `cursor` (one partition), `messages`,
`log_slice` (what is returned).
"""
