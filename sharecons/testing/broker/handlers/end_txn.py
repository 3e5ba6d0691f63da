"""EndTxn 0 to 5: commit or abort a transaction.

With version 5 a transaction is of version 2 (KIP-890): its end bumps the producer's
epoch, which the response returns. PRODUCER_FENCED exists from version 2 on (KIP-588).
The markers are written before the response is sent; in Kafka, maybe later.
"""

from sharecons.testing.broker import transaction_checks
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.transactions import EndResult, Producer
from sharecons.testing.broker.txn_markers import abort_expired, apply_ends
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    error = transaction_checks.transactional_id_error(context, request.transactional_id)
    result = EndResult(error) if error else _end(request, context)
    error = result.error
    if error is ErrorCode.producer_fenced and context.version < 2:
        error = ErrorCode.invalid_producer_epoch
    return {
        "error_code": error,
        "producer_id": result.producer.producer_id,
        "producer_epoch": result.producer.epoch,
    }


def _end(request: Request, context: Context) -> EndResult:
    cluster, now_ms = context.cluster, milliseconds()
    abort_expired(cluster, context.now, now_ms)
    result = cluster.transactions.end(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        request.committed,
        version=2 if context.version >= 5 else 1,
    )
    if result.ended is not None:
        apply_ends(cluster, [result.ended], now_ms)
    return result
