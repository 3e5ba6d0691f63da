"""Administration: requests that are sent to several brokers and their results.

Read `models` (groups, offsets, configs, topics), `state_records` (what coordinators
store), `requests`, `fanout` (one request per broker, with retries), `results`,
`broker_errors`.
"""
