"""State machines of KIP-932, without sockets, clocks, random numbers or logs.

`messages` are requests and responses, `codes` Kafka's error codes, `error_actions` what
to do about each, `backoff` and `open_enum` helpers, `reported_errors` what the
application has been told. The packages: `group`, `fetch`, `acknowledge`, `log_reader`,
`sasl`, `admin`, `diagnosis`, `migration`.

Every machine has the same contract:

- `next_request(now)` returns the request to send now, or None.
- `answered(request, answer, now)` or `failed(request, error, now)` follows each
  request, before the next one. Only `Leader.next_behind` returns a second request while
  one is in flight; it is answered after the first, and fails with it.
- `next_deadline(now)` is when `next_request` may return something although nothing else
  has happened; infinity if only an event can change that.
- `finished` is true when no request will ever follow.

Other calls (a subscription, an acknowledgement) may change the next request: the caller
then sets the driver's event. Times are seconds, on one clock that never goes back.
"""
