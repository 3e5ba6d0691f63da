"""One program per client, all with the same command line and output format.

A program runs one workload (`--what`) and prints its result as one line of JSON:

throughput  reads `--records` records with one or several consumers; the result is
            the report of `common.Meter`
latency     prints a line after the first record, then reads records whose values
            begin with their creation time; the result is percentiles of their age
redelivery  releases records; the result is percentiles of the time until redelivery
slow        pauses at each record for `--seconds`

`tests.bench.roster` lists the workloads of each client.
"""
