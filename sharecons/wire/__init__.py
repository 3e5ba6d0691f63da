"""Encodes the requests of `sharecons.protocol` to Kafka's bytes and decodes responses.

Only this package uses kio (the codec), API versions, and times in milliseconds. There
is one module per API. `codec.registry` finds the module of a request, `consumer_apis`
lists the modules of a consumer, and `codec.frames` adds and checks the headers.
"""
