"""InitProducerId (22): a new producer id, for idempotence without transactions."""

from datetime import timedelta
from typing import Final

from sharecons.protocol.produce.messages import (
    InitProducerId,
    InitProducerIdResponse,
    ProducerIdentity,
)
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import schema

__all__ = ["INIT_PRODUCER_ID"]

NO_TRANSACTIONS: Final = timedelta(0)


def _write(request: InitProducerId, version: int) -> bytes:
    kind = schema("init_producer_id", version).InitProducerIdRequest
    return write_entity(
        kind(transactional_id=None, transaction_timeout=NO_TRANSACTIONS)
    )


def _read(frame: Frame, offset: int, version: int) -> InitProducerIdResponse:
    kind = schema("init_producer_id", version).InitProducerIdResponse
    response = read_entity(kind, frame, offset)
    return InitProducerIdResponse(
        error=int(response.error_code),
        identity=ProducerIdentity(
            int(response.producer_id), int(response.producer_epoch)
        ),
    )


INIT_PRODUCER_ID: Api[InitProducerId, InitProducerIdResponse] = Api(
    key=22, name="InitProducerId", versions=range(4, 6), write=_write, read=_read
)
