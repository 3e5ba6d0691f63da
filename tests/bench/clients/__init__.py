"""One program for each client, all with the same command line and the same answer.

A program does one of these (`--what`), in a process of its own, and prints one
line of JSON:

throughput  reads so many records, with one consumer or with several, and gives
            `common.Meter.report`
latency     prints a line when it has a first record, then reads records whose values
            begin with the time they were made at, and gives the percentiles of how
            old they were
redelivery  releases records, and gives how long each took to come again
slow        takes its time with each record, until it has run long enough

Not every client does all of them: `tests.bench.roster` knows.
"""
