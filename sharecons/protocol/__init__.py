"""Decides: the state machines of KIP-932, without socket, clock, chance or log.

The machines' contract, said once:

- `next_request(now)` gives the request that is to go out now, or None.
- `answered(request, answer, now)` and `failed(request, error, now)` tell what
  became of it. Exactly one of them follows each request, before the next one; but
  `Leader.next_behind` may give one that is answered after that which is under way,
  and fails with it.
- `next_deadline(now)` is when `next_request` may have something to give although
  nothing else happened; infinity when only an event can change its mind.
- `finished` is true when no request will ever come again.

Whatever else is called between those (a subscription, an acknowledgement) may
change the next request: who calls it rings the driver's bell. Times are
seconds, on one clock that never goes back.
"""
