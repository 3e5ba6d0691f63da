"""Input and output: sockets, TLS, SASL, frames, and waking tasks.

`transport` is what a connection needs of the network; `tcp`, `frame_protocol` and
`framing` turn bytes into frames; `pipeline` keeps requests in flight; `idle_watch`
notices lost connections; `sasl` and `tls` secure them. `event`, `wakeup`
and `resumable_future` wake tasks, `clock` is the event loop's clock,
`callbacks` runs the application's functions.
"""
