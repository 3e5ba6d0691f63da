"""Bytes in and out: sockets, TLS, SASL, frames, and waking tasks.

Read `transport` (what a connection needs of the network), `tcp`, `frame_protocol` and
`framing` (bytes to frames), `pipeline` (requests in flight), `sasl`, `tls`. `wakeup`,
`event`, `event_waiter` and `resumable_future` wake tasks; `clock` is the loop's clock.
"""
