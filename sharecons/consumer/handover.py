"""Handing the member of a consumer over to a worker, which then runs it."""

from dataclasses import replace
from typing import Any, NamedTuple

from sharecons.config.validation import member_id_of
from sharecons.consumer.deserializers import Deserializers
from sharecons.consumer.share_consumer import ShareConsumer
from sharecons.errors import ConfigurationError
from sharecons.member.settings import MemberSettings
from sharecons.member.share_member import ShareMember

__all__ = ["HandedOver", "hand_over", "set_member_id", "settings_of"]


class HandedOver(NamedTuple):
    """The parts of a consumer that a worker uses.

    Attributes:
        member: is not started.
        deserializers: make the keys and values of records.
    """

    member: ShareMember
    deserializers: Deserializers


def hand_over(consumer: ShareConsumer[Any, Any]) -> HandedOver:
    """Return the member of a consumer, which cannot start or read any more.

    The properties of the consumer, `metrics()` and `aclose()` still work.

    Raises:
        ConfigurationError: the consumer is started or has a worker already, or it was
            made for implicit acknowledgements.
    """
    if consumer._member.state != "new" or consumer._is_handed_over:
        raise ConfigurationError(
            "the worker needs a ShareConsumer of its own that is not started; it "
            "starts and closes the consumer itself"
        )
    if consumer._acknowledgement == "implicit":
        raise ConfigurationError(
            'acknowledgement="implicit" has no effect in a ShareWorker, which accepts '
            "a record when its handler has returned; omit the argument"
        )
    consumer._is_handed_over = True
    return HandedOver(consumer._member, consumer._deserializers)


def settings_of(consumer: ShareConsumer[Any, Any]) -> MemberSettings:
    """Return the settings with which the consumer joins its group."""
    return consumer._member.settings


def set_member_id(consumer: ShareConsumer[Any, Any], name: str) -> None:
    """Set the member id of a consumer that has not started."""
    member = consumer._member
    fetch = replace(member.settings.fetch, member_id=member_id_of(name))
    member.settings = replace(member.settings, fetch=fetch)
