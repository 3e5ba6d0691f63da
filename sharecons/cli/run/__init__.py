"""`sharecons run`: runs the handlers of a share group in supervised processes.

- `supervisor`: starts, restarts and stops processes of one command.
- `restarts`: when a process that ended is started again.
- `lifeline`: how processes notice that their supervisor has died.
- `reload`: watches the working directory for changed files.
- `health`: `/livez`, `/readyz` and `/metrics` of one process.
"""
