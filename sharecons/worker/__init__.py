"""The worker: concurrent handlers, lock renewal, retries and dead letters.

`ShareWorker` and what its arguments need can be imported from `sharecons`.

Public:

- `share_worker`: the worker.
- `handlers`: handlers of one record or of many.
- `hooks`: functions that are called around handlers.
- `outcomes`: the outcomes of a record, and the exceptions by which a handler decides.
- `retry_policy`: when a failed record is tried again, and when it has failed for good.
- `retry_topics`: topics for records that wait too long for their partition.
- `dead_letters`: writes the records that have failed for good.
- `stats`: the counts of a worker.

Decisions, without I/O:

- `arguments`: whether the arguments of a worker are valid.
- `copy_topics`: whether retry topics and the dead-letter topic are usable.
- `scheduler`: which record is processed next, and how many are taken.
- `window`: whether a failed record can wait without stalling its partition.
- `decisions`: the outcome of a record.
- `placement`: where a failed record waits.
- `pace`: whether records are fetched before handlers are free.
- `renewals`: when locks are renewed, and when they are lost.
- `intake`: what is known of a record when it is delivered.
- `options`, `handler_checks`: the options; whether a function can be a handler.
- `error_text`: texts of an application's exceptions.
- `positions`: the position of a record.
- `origins`, `dead_letter_headers`: which record a copy was, and how its headers say so.

The shell around them:

- `start_checks`: checks the group and the topics before the first record is taken.
- `runner`: one run of a worker.
- `taking`: takes records from the consumer.
- `slots`: the tasks that call handlers.
- `threads`: threads that call plain functions, even if they do not end.
- `self_cancel`: undoes a cancellation that a handler has caused itself.
- `settlement`: carries out the outcomes of records.
- `copy_log`: log lines for copies that cannot be written.
- `locks`: renews locks.
- `group_settings`: follows the configs of the group.
- `failure_log`: log lines of failed attempts.
- `patrol`: looks for records that hold up their partitions.
"""
