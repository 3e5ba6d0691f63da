"""Random histories of a worker: no record is lost, whatever happens to the worker.

Workers of one group, with random options, follow one another or run side by side. They
are stopped, cancelled and killed, their connections are cut, brokers respond late, with
errors or not at all, and configs of the group change. From seed FIRST, applications
have hazards as well: see `audit_hazards`. Repeat one history by its seed:

    pytest "tests/scenarios/test_worker_audit.py::test_...[asyncio-seed7]"
"""

import logging
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.pytest_plugin import SETTINGS
from sharecons.worker import failure_log
from tests.scenarios.audit_findings import Findings
from tests.scenarios.audit_hazards import FIRST, hazards_of
from tests.scenarios.audit_history import RECORDS, History
from tests.scenarios.share_workers import Position

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(900),  # a minute of CPU time for some seeds
    pytest.mark.usefixtures("wall_clock"),
]

log = logging.getLogger(__name__)

AUDIT_SETTINGS = {**SETTINGS, "errors.deadletterqueue.topic.name.prefix": "dlq."}
POSITION = re.compile(r"topic=(\S+) partition=(\d+) offset=(\d+)")
QUICK = (0, 28, 101)
"""Seeds of the quick tier; 28 takes a last delivery as its worker ends (asyncio)."""

SEEDS = [
    pytest.param(
        seed, id=f"seed{seed}", marks=[] if seed in QUICK else [pytest.mark.thorough]
    )
    for seed in range(FIRST + 100)
]


@pytest.fixture(params=virtual_time.BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return virtual_time.backend(request.param)


@pytest.fixture
async def broker(seed: int, seeded: None) -> AsyncIterator[EmbeddedBroker]:
    brokers = hazards_of(seed).brokers
    async with EmbeddedBroker(
        brokers=brokers, settings=AUDIT_SETTINGS, listen=False
    ) as broker:
        yield broker


class Unwritten(logging.Handler):
    """Collects the positions whose dead letters a worker reports as not written."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.positions: set[Position] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith("dead letter not written before"):
            found = POSITION.search(text)
            assert found is not None, text
            topic, partition, offset = found.groups()
            self.positions.add(Position(topic, int(partition), int(offset)))


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch) -> Iterator[Unwritten]:
    monkeypatch.setattr(failure_log, "NOT_WRITTEN", RECORDS)  # name each of them
    handler, logger = Unwritten(), logging.getLogger("sharecons.worker.runner")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@pytest.mark.slow("settles 1,500 records in up to 16 lives")
@pytest.mark.parametrize("seed", SEEDS)
async def test_worker_that_ends_at_random_loses_no_record(
    broker: EmbeddedBroker, seed: int, unwritten: Unwritten
) -> None:
    hazards = hazards_of(seed)
    history = History(broker, seed, hazards, reported=unwritten.positions)
    try:
        await history.run()
    except BaseException:
        log.error("history of seed %d:\n%s", seed, "\n".join(history.log))
        raise
    findings = Findings(history)
    log.info(
        "seed %d: %s, %s; last delivery ended by a kill: %d, before a worker received "
        "it: %d, before its dead letter was written: %d, by a lowered limit: %d",
        seed,
        dict(history.counts),
        dict(history.journal.ends),
        len(findings.killed),
        len(findings.not_received),
        len(findings.reported),
        len(findings.lowered),
    )
    lines = "\n".join(history.log)
    assert [] == findings.lost, "\n".join([*findings.explain(), lines])
    assert [] == history.journal.overlaps, lines
    assert [] == findings.not_held(), lines
    assert [] == findings.early(), lines
    assert [] == findings.wrong_copies(), lines
    assert [] == findings.twice(), lines
    assert [] == findings.wrong_starts(), lines
