"""The worker as a machine, without I/O: events of its records in, actions out.

`worker_machine` has the events. Its contract:

- Each event returns actions. The shell carries them out in order, before the next
  event; `NOTHING` is none.
- Each record that was taken has one end: it is acknowledged once, or its lock is lost.
  Only its last delivery can have another one, a dead letter after a lost lock.
- A record is accepted after its handler has succeeded, or its copy is confirmed.
- A worker never calls two handlers with one record at a time, even if the record is
  delivered twice.
- Times are seconds, on one clock that never goes back.

Theory of operation
-------------------
The machine holds every record that was taken until the record has its end. A record is
ready, runs, waits for its next attempt, is blocked by an earlier record of its key, is
isolated, or is being copied; each state counts towards its own limit (`handler_queue`).

The shell requests calls (`next_call`), begins them, and reports results. `decisions`
makes an outcome of a result: accept, retry, release, reject, dead letter. `waits` then
decides where a retry waits, since a record that waits holds the window of its partition
for all members. `ends` carries the outcome out. It is the only place that acknowledges.

Three events can come at any time, between any two others: a lock is lost, a lease ends
(`max_lock_time`), and the worker stops. So a result does not settle a record that has
an outcome already, and the confirmation of a copy counts only while this copy is the
record's present one.

Brokers archive a record when its last delivery ends, for whatever reason, and do not
report why a delivery ended. So wherever a delivery would end, `decisions` first checks
whether it is the last one; if it is, a dead letter is confirmed before the release. A
record that was delivered without an outcome has perhaps ended its process: it runs
alone, and without a call on its last delivery.

The modules, in the order to read them:

- `item`: a record that is held, its states, and a call with it.
- `meters`: the counters of its topic, for metrics.
- `settings`: the settings of its handler.
- `topic_settings`: which handler a record has.
- `actions`: the I/O that the shell must do.
- `worker_machine`: the events.
- `delivery`: makes items of delivered records, before their first call.
- `batch_start`: when a batch starts.
- `handler_queue`: the records of one handler, and which are processed next.
- `scheduler`: which handler is called next.
- `handler_needs`: which of several handlers need records, and how many.
- `ending_calls`: cancelled calls that have not ended.
- `decisions`: the outcome of a record.
- `isolation`: which records run alone.
- `waits`: where a record waits for its next attempt.
- `window`: whether it can wait without stalling its partition.
- `ends`: carries out outcomes.
- `copies`: the records that are written to another topic.
- `release_advice`: settings that avoid releases.
- `stalls`: finds records that hold up their partitions.
"""
