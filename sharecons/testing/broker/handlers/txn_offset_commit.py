"""TxnOffsetCommit 0 to 6: commit a group's offsets with a transaction.

They are pending until the transaction ends. Version 2 has leader epochs. From version 3
on it has the member, and old generations are rejected (KIP-447). Before version 5 the
group must have been added by AddOffsetsToTxn, else version 4 returns its own error;
version 5 adds it (KIP-890). Version 6 has topics by id, and returns GROUP_ID_NOT_FOUND
for a generation of a group that does not exist (KIP-1319).
"""

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.group_checks import (
    check_access,
    check_coordinator,
    check_group_id,
)
from sharecons.testing.broker.group_commits import commit_each, get_or_create_group
from sharecons.testing.broker.groups.classic import ClassicGroup
from sharecons.testing.broker.offset_partitions import same_error
from sharecons.testing.broker.transactions import Producer, TransactionSupport
from sharecons.testing.broker.txn_markers import abort_expired
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    try:
        _check_access(request, context)
    except GroupError as error:
        return {"topics": same_error(request.topics, error.code)}
    producer_id: int = request.producer_id
    results = commit_each(
        context,
        request.topics,
        get_group=lambda: _group(request, context),
        store=lambda group, offsets: group.offsets.add_pending(producer_id, offsets),
    )
    return {"topics": results}


def _check_access(request: Request, context: Context) -> None:
    transactional_id = request.transactional_id
    if context.cluster.authorizer.denies("WRITE", "TRANSACTIONAL_ID", transactional_id):
        raise GroupError(ErrorCode.transactional_id_authorization_failed)
    check_access(context, "READ", request.group_id)


def _check_transaction(request: Request, context: Context) -> None:
    """Check that the transaction has the group, or add it.

    Raises:
        GroupError: it has not, and the group cannot be added.
    """
    abort_expired(context.cluster, context.now, milliseconds())
    support = (
        TransactionSupport.ADD_PARTITION
        if context.version >= 5
        else TransactionSupport.DEFAULT
    )
    if context.version == 4:
        support = TransactionSupport.ABORTABLE
    code = context.cluster.transactions.add_pending_offsets(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        request.group_id,
        support,
        context.now,
    )
    if code:
        raise GroupError(code)


def _group(request: Request, context: Context) -> ClassicGroup:
    """Return the group to commit to, which is part of the transaction.

    Raises:
        GroupError: the commit is rejected.
    """
    check_group_id(request.group_id)
    check_coordinator(context, request.group_id)
    _check_transaction(request, context)
    generation_id: int = field_or(request, "generation_id", -1)
    group = get_or_create_group(
        context,
        request.group_id,
        named=generation_id >= 0,
        missing=ErrorCode.group_id_not_found
        if context.version >= 6
        else ErrorCode.illegal_generation,
    )
    group.check_commit(
        field_or(request, "member_id", ""),
        field_or(request, "group_instance_id", None),
        generation_id,
        context.now,
        transactional=True,
    )
    return group
