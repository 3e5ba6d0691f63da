"""Administration: requests that are sent to several brokers and their results.

Read `models` (groups, offsets, configs, topics), `requests`, `fanout` (one request per
broker, with retries), `results`, `broker_errors`, `group_configs`.
"""
