"""The cost of members and tools as a cluster grows, on one real Kafka 4.4.0.

    python -m tests.limits --axes partitions,members --output DIR

Read in this order:

    `scenes`     the sizes of a run: partitions, topics, members, groups
    `growth`     the exponent with which a figure grows, and whether that is a fault
    `traffic`    the requests and bytes that pass a proxy, by API
    `member`     a program: members of share groups in one process
    `members`    these processes: their CPU, memory and events
    `command`    a program: one command of the command line, measured
    `tools`      every command that reads the cluster, the exporter, the dashboard
    `crowd`      a program: up to 999 members that only send heartbeats
    `run`        one scene: join, idle, load, tools, a newcomer
    `report`     tables

A figure that grows faster than its size is a fault, unless the broker causes it.
"""
