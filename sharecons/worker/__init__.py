"""The worker: concurrent handlers, lock renewal, retries and dead letters.

`ShareWorker` and what its arguments need can be imported from `sharecons`.

Public:

- `share_worker`: the worker, with `lifecycle` (runs it), `health` (its state) and
  `decorators` (registers functions).
- `settings`: the options of a worker; `machine.settings` has a handler's options.
- `options`: their types as keyword arguments.
- `handler`: a function with settings of its own.
- `handlers`: handlers of one record or of many.
- `middleware`: coroutine functions that wrap the calls of handlers.
- `outcome_events`: calls a function for each outcome of a record.
- `outcomes`: the outcomes of a record, and the exceptions by which a handler decides.
- `retry_policy`: when a failed record is tried again, and when it has failed for good.
- `retry_topics`: topics for records that wait too long for their partition.
- `stats`: the counts of a worker.
- `metrics`: the table of `worker.metrics()`.
- `health_policy`: when a worker counts as not ready, and as not live.

Decisions, without I/O:

- `registry`: the handlers of a worker until it starts.
- `arguments`: whether the arguments of a worker are valid.
- `copy_topics`: whether retry topics and the dead-letter topic are usable.
- `machine`: the worker as a machine. Its package names its modules.
- `routes`: which handler processes a record.
- `handler_checks`: whether a function can be a handler.
- `quoted_records`: whether an application's exceptions quote a record.
- `positions`: the position of a record.
- `conditions`: why a worker is not ready, with `missing_topics`, `standstills` and
  `loop_watch`.
- `origins`: which record a copy was.

The shell around them:

- `start_checks`: checks the group and the topics before the first record is taken.
- `runner`: one run of a worker.
- `membership`: the default source of records, a member of the share group.
- `source_run`: starts and closes the source.
- `demand`: how many records are taken now, and from which topics.
- `take_loop`: takes records from the source.
- `undelivered`: records whose last delivery ends before they are taken.
- `slots`: the tasks that call handlers.
- `running_records`: the records in calls, in a file that outlives the process.
- `middleware_chain`: calls a handler within middleware.
- `handler_function`: a handler as a coroutine function, with a time limit.
- `handler_results`: results with which a record must not be accepted.
- `threads`: threads that call plain functions, even if they do not end.
- `self_cancel`: undoes a cancellation that a handler has caused itself.
- `executor`: carries out the machine's actions.
- `copy_writer`: writes copies of failed records.
- `shutdown`: how a run ends.
- `group_settings`: follows the configs of the group.
- `failure_texts`: makes the texts of failed calls in threads.
- `failure_log`, `life_log`: log lines of failed records and their copies; of start,
  stop and end.
"""
