"""`sharecons demo`: what a share group does, shown in half a minute.

Jobs are written to a topic, and a few consumers of one group work them off. One
fails now and then and releases its job, one is killed with jobs in its hands, and
one job makes everybody fail until it is rejected. In the end the numbers add up.

    plan      what is to happen: who fails, when, and how long a job takes
    ledger    what happened to each job, and whether it adds up
    words     what happened, in English
    screen    the ledger as a picture, lines: as lines of text
    requests  what is asked of a broker beside consuming, ground: who asks it
    wires     connections that can be cut, worker: a consumer at work
    show      all of it together

The first three are plain values and arithmetic. The broker is whichever is named; the
demo talks to the embedded one as it talks to any other, over TCP.
"""
