"""The check that every request with a transactional id starts with."""

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.coordinators import TRANSACTION

__all__ = ["transactional_id_error"]


def transactional_id_error(context: Context, transactional_id: str) -> ErrorCode:
    """Return why this broker rejects a transactional id, or `none`."""
    cluster = context.cluster
    if cluster.authorizer.denies("WRITE", "TRANSACTIONAL_ID", transactional_id):
        return ErrorCode.transactional_id_authorization_failed
    coordinator = cluster.coordinators.node_for(
        TRANSACTION, transactional_id, cluster.running
    )
    # An empty id has no coordinator; every broker rejects it as invalid.
    if transactional_id and coordinator != context.node_id:
        return ErrorCode.not_coordinator
    if cluster.coordinators.is_loading(TRANSACTION, transactional_id):
        return ErrorCode.coordinator_load_in_progress
    return ErrorCode.none
