"""A week in virtual time: no record is lost, and nothing grows."""

import logging
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from sharecons.member import group_configs, unassigned_watch
from sharecons.net import outages
from sharecons.protocol.group import metadata
from sharecons.protocol.group.heartbeat import Membership
from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.worker import blocked_loop, runner, take_loop
from tests.census import grown
from tests.scenarios.week import SETTINGS, Week

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("wall_clock", "seeded", "rare_checks"),
]

BOUNDED: Final = (
    "objects of sharecons.dashboard.history.Point",
    "entries of sharecons.dashboard.history.Series.points",
)
"""A series has a point for each collection, up to 360."""


@pytest.fixture
def seed() -> int:
    return 57


@pytest.fixture
def anyio_backend() -> Any:
    return virtual_time.backend("asyncio")


@pytest.fixture
def rare_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look every five minutes where members look each second: a week has 600,000."""
    for module, name in (
        (blocked_loop, "INTERVAL"),
        (runner, "INTERVAL"),
        (take_loop, "POLL_TIMEOUT"),
        (outages, "OVERDUE"),
        (unassigned_watch, "LOOK_INTERVAL"),
    ):
        monkeypatch.setattr(module, name, 300.0)
    monkeypatch.setattr(group_configs, "INTERVAL", 1800.0)


@pytest.fixture
async def broker(
    seeded: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[EmbeddedBroker]:
    monkeypatch.setattr(metadata, "MAX_FORMER_NAMES", 4)  # reached on the third day
    async with EmbeddedBroker(brokers=3, settings=SETTINGS, listen=False) as broker:
        yield broker


async def run(week: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a week whose log lines pytest does not keep: tracebacks hold much."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    await week.run()


def found(week: Week) -> list[str]:
    """Return what is more at the end than at the beginning of a week."""
    count = 3 * len(week.censuses) // 7
    more = grown(week.censuses[:count], week.censuses[-count:])
    return [each for each in more if not each.startswith(BOUNDED)]


@pytest.mark.slow("a week of requests", seconds=90)
@pytest.mark.timeout(900)
async def test_week_loses_no_record_and_leaves_nothing(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    week = Week(broker)

    await run(week, monkeypatch)

    assert [] == week.ledger.lost()
    assert [] == found(week)


@pytest.mark.thorough
async def test_member_that_keeps_its_heartbeats_grows(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The week finds a leak: here one that is planted."""
    on_response = Membership.on_response

    def keep(self: Any, request: Any, response: Any, now: float) -> None:
        vars(self).setdefault("kept", []).append(now)
        on_response(self, request, response, now)

    monkeypatch.setattr(Membership, "on_response", keep)
    week = Week(broker, days=3)

    await run(week, monkeypatch)

    (line,) = [each for each in found(week) if "Membership.kept" in each]
    assert line.startswith("entries of sharecons.protocol.group.heartbeat")
