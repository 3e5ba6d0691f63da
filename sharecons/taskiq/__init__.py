"""A broker for taskiq on a share group: `ShareGroupBroker`.

Needs `sharecons[taskiq]`. docs/taskiq.md is the guide.

- `broker`: the class for applications; sends tasks, starts and stops the other parts.
- `settings`: its options: a member's, and its own.
- `messages`: how a task becomes a record: its key and headers, and when it is due.
- `held_tasks`: decides which held task is given to taskiq's receiver next.
- `isolation`: decides which tasks run alone, because they perhaps end their process.
- `acknowledgement`: the message that the receiver gets, and its `ack`.
- `task_source`: takes records from the consumer, keeps their locks, acknowledges them.
"""

try:
    import taskiq as _taskiq  # noqa: F401
except ImportError as error:
    raise ImportError(
        "sharecons.taskiq needs taskiq: pip install 'sharecons[taskiq]'"
    ) from error

from sharecons.taskiq.broker import ShareGroupBroker
from sharecons.taskiq.messages import KEY_LABEL

__all__ = ["KEY_LABEL", "ShareGroupBroker"]
__dir__ = __all__.copy
