"""InitProducerId 0 to 5: an id for an idempotent or a transactional producer.

A transactional producer gets the id of its transactional id and the next epoch, which
fences the previous producer. Since version 3 it can send its last id and epoch, to
continue after an error (KIP-360). PRODUCER_FENCED exists since version 4.
"""

from sharecons.testing.broker import transaction_checks
from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.transactions import InitResult, Producer
from sharecons.testing.broker.txn_markers import abort_expired, apply_ends
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]

NO_ID = -1


async def handle(request: Request, context: Context) -> Response:
    result = _initialise(request, context)
    error = result.error
    if error is ErrorCode.producer_fenced and context.version < 4:
        error = ErrorCode.invalid_producer_epoch
    return {
        "error_code": error,
        "producer_id": result.producer.producer_id,
        "producer_epoch": result.producer.epoch,
    }


def _initialise(request: Request, context: Context) -> InitResult:
    cluster = context.cluster
    if error := _request_error(request, context):
        return InitResult(error)
    if request.transactional_id is None:
        return InitResult(
            ErrorCode.none, Producer(cluster.transactions.new_producer_id(), 0)
        )
    now_ms = milliseconds()
    abort_expired(cluster, context.now, now_ms)
    result = cluster.transactions.initialise(
        request.transactional_id,
        request.transaction_timeout.total_seconds(),
        _expected(request),
    )
    if result.ended is not None:
        apply_ends(cluster, [result.ended], now_ms)
    return result


def _request_error(request: Request, context: Context) -> ErrorCode:
    name = request.transactional_id
    authorizer = context.cluster.authorizer
    if name is None and authorizer.denies("IDEMPOTENT_WRITE", "CLUSTER", CLUSTER_NAME):
        return ErrorCode.cluster_authorization_failed
    if name is not None and (
        code := transaction_checks.transactional_id_error(context, name)
    ):
        return code
    expected = (
        field_or(request, "producer_id", NO_ID),
        field_or(request, "producer_epoch", NO_ID),
    )
    is_incomplete = expected.count(NO_ID) == 1
    return ErrorCode.invalid_request if is_incomplete else ErrorCode.none


def _expected(request: Request) -> Producer | None:
    producer_id = field_or(request, "producer_id", NO_ID)
    if producer_id == NO_ID:
        return None
    return Producer(producer_id, field_or(request, "producer_epoch", NO_ID))
