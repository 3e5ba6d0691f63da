"""Processes of `sharecons run` that some records kill: no record is lost.

Two processes under a supervisor; each history has its handler (async, in threads, in
batches), its way to crash and its locks. Repeat one history by its seed:

    pytest "tests/scenarios/test_process_audit.py::test_...[seed7]"
"""

import logging
import random
from pathlib import Path
from typing import Any

import pytest

from sharecons.copies.dead_letter_headers import read_origin
from sharecons.testing import EmbeddedBroker
from tests.cli.run.running import SOON, running
from tests.scenarios import audit_app
from tests.scenarios.audit_app import CYCLE, PLANS
from tests.scenarios.audit_events import ARCHIVE, GROUP, create_archive

log = logging.getLogger(__name__)

RECORDS = 120
SETTLED = 90.0
AUDIT_SETTINGS = {**SOON, "errors.deadletterqueue.topic.name.prefix": "dlq."}
SEEDS = [
    pytest.param(
        seed, id=f"seed{seed}", marks=[] if seed < 1 else [pytest.mark.thorough]
    )
    for seed in range(30)
]


def start_group(broker: EmbeddedBroker, chance: random.Random) -> None:
    broker.create_topic("orders", 3)
    broker.create_topic("orders.dead", 1)
    create_archive(broker)
    config = {
        "errors.deadletterqueue.topic.name": ARCHIVE,
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": chance.choice([1000, 3000]),
        "share.delivery.count.limit": 5,
    }
    broker.set_group_config(GROUP, config)
    values = [b"%d" % number for number in range(RECORDS)]
    broker.produce("orders", values, batch=chance.choice([1, 10, None]))


@pytest.mark.slow("waits until a supervisor has started crashed processes again")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", SEEDS)
def test_records_that_kill_their_process_lose_no_record(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDIT_SEED", str(seed))
    app = Path(audit_app.__file__).read_text()
    with EmbeddedBroker(settings=AUDIT_SETTINGS) as broker:
        start_group(broker, random.Random(f"group {seed}"))
        options = ("--processes", "2")
        target = "app:make_worker"
        with running(broker, tmp_path, target, *options, app=app) as command:
            broker.wait_until_settled_sync(GROUP, timeout=SETTLED)
            assert 0 == command.stop(), command.stderr[-3000:]
            ended = {number for _, number in command.entries("end")}
            rejected = {number for _, number in command.entries("reject")}
            begun = command.entries("begin")
        letters = broker.records("orders.dead")
        dead = {int(letter.value or b"") for letter in letters}
        archived = {_archived(record) for record in broker.records(ARCHIVE)}
    failing = {"crash", "fail always", "dead letter"}
    log.info(
        "seed %d: %d calls in %d processes, %d dead letters, %d of which crash and "
        "fail nothing, %d archived",
        seed,
        len(begun),
        len({process for process, _ in begun}),
        len(dead),
        len({number for number in dead if plan_of(number) not in failing}),
        len(archived),
    )
    assert set() == {*range(RECORDS)} - ended - rejected - dead
    crashing = {number for number in range(RECORDS) if plan_of(number) == "crash"}
    assert crashing <= dead


def plan_of(number: int) -> str | None:
    return PLANS.get(number % CYCLE)


def _archived(record: Any) -> tuple[int, int]:
    origin = read_origin(record.headers)
    assert origin is not None
    return origin.partition, origin.offset
