"""Handlers per second: the worker beside FastStream and taskiq.

`python -m tests.bench.workers --rounds 5` starts a broker, and runs each client in a
process of its own, in turn. `programs` has the clients, `running` starts them.
`retries` compares the throughput with and without failed records, `observability` the
cost with and without metrics and spans.
"""
