"""A Kafka that fits in a test: brokers in this process, over TCP or over memory.

It speaks the protocol well enough that librdkafka, aiokafka and Kafka's own tools take
it for Kafka, and serves share groups whole. It shares no code with the client that it
is to check. From the socket inwards:

    node.py         a port, and the connections that come in by it
    connection.py   one client: frames in turn
    faults.py       what it is told to do wrong
    codec.py        frames to messages and back (kio)
    apis.py         which API goes to which of handlers/
    cluster.py      the state that handlers read and change
"""
