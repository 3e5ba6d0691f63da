"""A consumer and a worker on three real brokers for hours: nothing lost, nothing grows.

    python -m tests.soak --hours 8

Each of the two groups has two processes. The first one is measured, and is never
killed: memory, tasks and connections leak where a client recovers, and a process that
starts again begins from nothing. Every ten minutes one of these is killed (SIGKILL), in
turn: the leader of a partition, the coordinator of a group, the controller, the second
process of both groups.

    `schedule`  the kills of a run
    `client`    the processes: a loop or a worker, which also measures itself
    `sample`    one measurement of a process
    `books`     the ledger of a run that is too long to have all of it in memory
    `minutes`   records/s and latencies, minute by minute, beside and during kills
    `slopes`    the Theil-Sen slope of a series, its confidence interval, its noise
    `limits`    the slopes that are allowed
    `run`       one run
    `report`    its table and its results as JSON
    `pictures`  its curves

The cluster, processes, journals and the ledger come from tests/chaos.
"""
