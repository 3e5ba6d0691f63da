"""InitProducerId 0 to 5: an id for an idempotent or a transactional producer.

A transactional producer gets the id of its transactional id and the next epoch, which
fences the previous producer. From version 3 on it may send its last id and epoch, to
continue after an error (KIP-360). PRODUCER_FENCED exists from version 4 on.
"""

from sharecons.testing.broker import transaction_gate
from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.transactions import InitResult, Producer
from sharecons.testing.broker.txn_markers import abort_expired, apply_ends
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]

NOBODY = -1


async def handle(request: Request, context: Context) -> Response:
    done = _initialise(request, context)
    error = done.error
    if error is ErrorCode.producer_fenced and context.version < 4:
        error = ErrorCode.invalid_producer_epoch
    return {
        "error_code": error,
        "producer_id": done.producer.producer_id,
        "producer_epoch": done.producer.epoch,
    }


def _initialise(request: Request, context: Context) -> InitResult:
    cluster = context.cluster
    if refusal := _refusal(request, context):
        return InitResult(refusal)
    if request.transactional_id is None:
        return InitResult(
            ErrorCode.none, Producer(cluster.transactions.new_producer_id(), 0)
        )
    now_ms = milliseconds()
    abort_expired(cluster, context.now, now_ms)
    done = cluster.transactions.initialise(
        request.transactional_id,
        request.transaction_timeout.total_seconds(),
        _expected(request),
    )
    if done.ended is not None:
        apply_ends(cluster, [done.ended], now_ms)
    return done


def _refusal(request: Request, context: Context) -> ErrorCode:
    name = request.transactional_id
    access = context.cluster.authorizer
    if name is None and access.denies("IDEMPOTENT_WRITE", "CLUSTER", CLUSTER_NAME):
        return ErrorCode.cluster_authorization_failed
    if name is not None and (
        code := transaction_gate.transactional_id_error(context, name)
    ):
        return code
    expected = (
        field_or(request, "producer_id", NOBODY),
        field_or(request, "producer_epoch", NOBODY),
    )
    half = expected.count(NOBODY) == 1
    return ErrorCode.invalid_request if half else ErrorCode.none


def _expected(request: Request) -> Producer | None:
    producer_id = field_or(request, "producer_id", NOBODY)
    if producer_id == NOBODY:
        return None
    return Producer(producer_id, field_or(request, "producer_epoch", NOBODY))
