"""The outstanding acknowledgements of one commit()."""

from typing import final

from sharecons.protocol.acknowledge.result_log import AcknowledgeResult

__all__ = ["CommitWaiter"]


@final
class CommitWaiter:
    """The acknowledgement batches that one commit() waits for."""

    __slots__ = ("outstanding", "results")

    def __init__(self) -> None:
        self.outstanding = 0
        self.results: list[AcknowledgeResult] = []

    @property
    def is_done(self) -> bool:
        return self.outstanding == 0
