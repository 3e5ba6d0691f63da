"""A Kafka that fits in a test: brokers in this process, over TCP or over memory.

It speaks the protocol well enough that librdkafka, aiokafka and Kafka's own tools take
it for Kafka, and serves share groups whole. It shares no code with the client that it
is to check. From the socket inwards:

    embedded.py     `EmbeddedBroker`, and what a test may tell it (control.py)
    host.py         the event loop that it runs on, in a thread or not
    addresses.py    where brokers listen, and what clients are given
    node.py         a port (sockets.py), or none (memory.py), and who comes in
    connection.py   one client: frames in turn
    exchange.py     one request and its answer
    faults.py       what it is told to do wrong (actions.py, refusals.py)
    codec.py        frames to messages and back (kio)
    apis.py         which API goes to which of handlers/
    cluster.py      the state that handlers read and change
"""
