"""`sharecons demo`: a 25-second run that shows how a share group works.

The demo produces jobs to a topic, and several `ShareWorker`s of one share group process
them, each in a process of its own. One fails sometimes and tries its job again, one is
killed while it has jobs and is started again later, and one job fails in every attempt
until it is a dead letter, which is redriven at the end. The demo then checks that each
job was done once. It uses the public classes of this package only.

Read in this order:

    worker  the program of one worker
    jobs    the state of each job, and the check; no I/O
    run     the topics, the workers' processes, and what happens in which order
    views   a picture on a terminal, or lines of text
"""
