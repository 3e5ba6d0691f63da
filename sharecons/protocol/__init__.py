"""State machines of KIP-932, without sockets, clocks, random numbers or logs.

`partitions` names partitions and brokers, `share_messages` are the requests and
responses of share sessions, `codes` Kafka's error codes, `error_actions` the
action for each, `error_advice` what users can do about some, `backoff` and `open_enum`
helpers, `reported_errors` the errors already raised in the application, `grace_period`
how long rejected tokens and certificates are retried. The packages:
`group`, `fetch`, `acknowledge`, `log_reader`, `sasl`, `produce`,
`telemetry`, `admin`.

Every machine has the same contract:

- `next_request(now)` returns the request to send now, or None.
- Each request is followed by `on_response(request, response, now)` or
  `on_error(request, error, now)`, before the next request.
- `next_deadline(now)` returns when `next_request` can return a request without another
  event; infinity if only an event can change that.
- `finished` is true when no request will follow.

Other calls (a subscription, an acknowledgement) can change the next request: the caller
then sets the driver's event. Times are seconds, on one clock that never goes back.
"""
