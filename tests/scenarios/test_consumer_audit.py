"""Random histories of plain consumers: no record is lost, whatever happens to them.

Consumers of one group follow one another or run side by side. They read in loops, polls
and batches, in several tasks, with and without explicit acknowledgements. Topics are
paused, tasks are cancelled, connections are cut, leaders move, consumers are closed and
killed. Half of the groups start at the end. Repeat one history by its seed:

    pytest "tests/scenarios/test_consumer_audit.py::test_...[asyncio-seed7]"
"""

import logging
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.pytest_plugin import SETTINGS
from tests.scenarios.audit_consumer_findings import ConsumerFindings
from tests.scenarios.audit_consumers import ConsumerHistory

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("wall_clock"),
]

log = logging.getLogger(__name__)

AUDIT_SETTINGS = {
    **SETTINGS,
    "errors.deadletterqueue.topic.name.prefix": "dlq.",
    "group.share.max.delivery.count.limit": 25,
}
QUICK = (0, 2)

SEEDS = [
    pytest.param(
        seed, id=f"seed{seed}", marks=[] if seed in QUICK else [pytest.mark.thorough]
    )
    for seed in range(100)
]


@pytest.fixture(params=virtual_time.BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return virtual_time.backend(request.param)


@pytest.fixture
async def broker(seed: int) -> AsyncIterator[EmbeddedBroker]:
    brokers = random.Random(f"brokers {seed}").choice([1, 1, 2, 3])
    async with EmbeddedBroker(
        brokers=brokers, settings=AUDIT_SETTINGS, listen=False
    ) as broker:
        yield broker


@pytest.mark.slow("settles 400 records in several lives")
@pytest.mark.parametrize("seed", SEEDS)
async def test_consumers_whose_lives_are_random_lose_no_record(
    broker: EmbeddedBroker, seed: int, seeded: None
) -> None:
    history = ConsumerHistory(broker, seed)
    try:
        await history.run()
    except BaseException:
        log.error("history of seed %d:\n%s", seed, "\n".join(history.log))
        raise
    findings = ConsumerFindings(history)
    counts = dict(history.counts)
    log.info("seed %d: %s, archived: %d", seed, counts, len(findings.archived))
    lines = "\n".join(history.log)
    assert [] == findings.lost, lines
    assert [] == findings.early(), lines
    assert [] == findings.archived, lines
    assert [] == findings.twice(), lines
    assert [] == findings.wasted(), lines
