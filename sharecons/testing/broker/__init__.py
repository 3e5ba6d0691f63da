"""An embedded Kafka for tests: brokers in this process, over TCP or over memory.

The brokers implement enough of the protocol for librdkafka, aiokafka and Kafka's own
tools, and all of share groups. They share no code with the client that they test. From
the socket inwards:

    embedded.py     `EmbeddedBroker`, which a test can change by hand (control.py)
    runner.py       the event loop that the brokers run on, in a thread or not
    addresses.py    the addresses that brokers bind and advertise
    node.py         one broker, on a port (sockets.py) or over memory (memory.py)
    connection.py   one client: frames in order
    exchange.py     one request and its response
    faults.py       fault injection (fault_arguments.py, actions.py, error_responses.py)
    codec.py        frames to messages and back (kio)
    apis.py         the API keys, their versions and their handlers/
    telemetry.py    the metrics that clients push (telemetry_control.py)
    cluster.py      the state that handlers read and change
"""
