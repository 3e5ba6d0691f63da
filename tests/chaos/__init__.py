"""Share groups on three real brokers, under random faults: losses and duplicates.

    python -m tests.chaos --seeds 1-5 --seconds 180

Each run has a seed, which decides the faults, their times and the kind of client:

    `histories`  the kind of a run, and its topics, from its seed
    `plan`       the faults of a run, from its seed
    `cluster`    three brokers behind proxies, and the topics of the run
    `certificates` TLS and SCRAM of some runs, which are renewed and expire
    `clocks`     clocks of processes that jump
    `proxy`      a TCP proxy that cuts, stalls, slows, and drops responses
    `faults`     carries out a plan
    `clients`    the programs that consume, each a process with a journal
    `fleet`      starts, kills and pauses these processes, and samples their memory
    `redriving`  redrives dead letters, in runs of this kind
    `journal`    the lines that a process writes about its records
    `ledger`     everything produced, and what became of it: the verdict
    `crashes`    the verdict about records that end their process
    `key_order`  the verdict about the order of records with one key
    `redrives`   the verdict about redriven dead letters
    `evidence`   reads journals and logs for these verdicts
    `run`        one run
    `report`     tables of runs

sharecons is compared with confluent-kafka-python and franz-go, which run beside it with
topics of their own and meet the same faults. Their records end no process.
"""
