"""Topics to which members of share groups subscribe, and which do not exist."""

from collections.abc import Iterable

from sharecons.admin import ShareGroupAdmin
from sharecons.errors import BrokerError, Error
from sharecons.protocol.codes import Code

__all__ = ["find_missing_topics"]


async def find_missing_topics(
    admin: ShareGroupAdmin, topics: Iterable[str]
) -> tuple[dict[str, bool], tuple[Error, ...]]:
    """Return for each topic whether it is missing, and the errors of other topics.

    It is unknown for topics that this principal is not allowed to describe.

    Raises:
        Error: the brokers did not respond.
    """
    names = sorted(set(topics))
    if not names:
        return {}, ()
    described = await admin.describe_topics(*names)
    missing = dict.fromkeys(described.found, False)
    others: list[Error] = []
    for name, error in described.errors.items():
        if _is_unknown_topic(error):
            missing[name] = True
        else:
            others.append(error)
    return missing, tuple(others)


def _is_unknown_topic(error: Error) -> bool:
    code = error.code if isinstance(error, BrokerError) else None
    return code == Code.UNKNOWN_TOPIC_OR_PARTITION
