"""AddOffsetsToTxn 0 to 4: commit a group's offsets with a transaction.

Producers with transactions of version 2 do not send it: TxnOffsetCommit 5 adds the
group (KIP-890). PRODUCER_FENCED exists from version 2 on (KIP-588).
"""

from sharecons.testing.broker import transaction_checks
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.transactions import Producer
from sharecons.testing.broker.txn_markers import abort_expired
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    code = _check(request, context) or _add(request, context)
    if code is ErrorCode.producer_fenced and context.version < 2:
        code = ErrorCode.invalid_producer_epoch
    return {"error_code": code}


def _check(request: Request, context: Context) -> ErrorCode:
    code = transaction_checks.transactional_id_error(context, request.transactional_id)
    denied = context.cluster.authorizer.denies("READ", "GROUP", request.group_id)
    if denied and code is not ErrorCode.transactional_id_authorization_failed:
        return ErrorCode.group_authorization_failed
    return code


def _add(request: Request, context: Context) -> ErrorCode:
    abort_expired(context.cluster, context.now, milliseconds())
    return context.cluster.transactions.add_group(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        request.group_id,
        context.now,
    )
