"""The faults of chaos runs."""

from tests.chaos.faults import Faults
from tests.chaos.plan import BROKER_KINDS, KINDS, plan_faults

SEEDS = range(100)


def test_seed_decides_the_faults() -> None:
    assert plan_faults(7, 180.0) == plan_faults(7, 180.0)
    assert plan_faults(7, 180.0) != plan_faults(8, 180.0)


def test_faults_end_before_the_run() -> None:
    plans = [plan_faults(seed, 180.0) for seed in SEEDS]

    assert all(fault.end <= 165.0 for plan in plans for fault in plan)
    assert min(map(len, plans)) >= 4


def test_all_kinds_of_faults_happen_and_can_be_carried_out() -> None:
    planned = {fault.kind for seed in SEEDS for fault in plan_faults(seed, 180.0)}
    (upgrade,) = {
        fault.kind for fault in plan_faults(1, 180.0, upgrades=True)[:1]
    } - planned

    assert set(KINDS) == planned
    assert {*KINDS, upgrade} == set(Faults.WAYS)


def test_one_broker_is_down_at_a_time() -> None:
    for seed in SEEDS:
        down = [f for f in plan_faults(seed, 180.0) if f.kind in BROKER_KINDS]
        assert all(a.end < b.at for a, b in zip(down, down[1:], strict=False))
