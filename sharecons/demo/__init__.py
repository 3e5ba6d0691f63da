"""`sharecons demo`: a 25-second run that shows how a share group works.

The demo produces jobs to a topic, and several consumers of one share group process
them, each a `ShareWorker`. One fails sometimes and releases its job, one is killed
while it has jobs, and one job fails in every consumer until it is rejected. At the end,
the demo checks that the state of each job agrees with the broker.

Read in this order:

    plan         which consumer fails, which is killed, how long a job takes
    job_tracker  the state of each job, and the final check
    environment  the demo's topic and share group at the broker
    requests     the requests that `environment` sends
    worker       one `ShareWorker` that processes jobs and can be killed
    network      connections that stop when their consumer is killed
    runner       the whole demo
    messages     the texts that both views show
    screen       the view on a terminal
    text_view    the view as lines of text
    clock        the demo's time, and waiting for changes
    program      the command's options, errors and exit code

`plan` and `job_tracker` do no I/O. The broker is the given one or an embedded one; the
demo uses both in the same way, over TCP.
"""
