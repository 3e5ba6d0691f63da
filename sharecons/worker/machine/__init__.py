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

The modules, in the order to read them:

- `item`: a record that is held, its states, and a call with it.
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
