"""Input and output: sockets, TLS, SASL, and the event loop.

`transport` is what a connection needs of the network, `tcp` implements it on sockets,
`exchange_timeout` ends exchanges that take too long; `name_lookup` looks up host names;
`idle_watch` notices lost connections; `sasl` and `tls` secure them. `event_loop` wakes
tasks and tells the time. `callbacks` runs the application's functions,
and `token_function` its function for tokens.
"""
