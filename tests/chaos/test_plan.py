"""The faults of chaos runs."""

from collections import Counter

from tests.chaos.clients.plans import CRASHES, plan_of
from tests.chaos.faults import Faults
from tests.chaos.histories import CRASHING, ROTATION, history_of
from tests.chaos.plan import (
    BROKER_KINDS,
    CLOCK_KINDS,
    KINDS,
    SECURITY_KINDS,
    kinds_of,
    plan_faults,
)

SEEDS = range(100)
ALL = kinds_of(has_tls=True, has_clocks=True)


def test_seed_decides_the_faults() -> None:
    assert plan_faults(7, 180.0) == plan_faults(7, 180.0)
    assert plan_faults(7, 180.0) != plan_faults(8, 180.0)


def test_faults_end_before_the_run() -> None:
    plans = [plan_faults(seed, 180.0) for seed in SEEDS]

    assert all(fault.end <= 165.0 for plan in plans for fault in plan)
    assert min(map(len, plans)) >= 4


def test_all_kinds_of_faults_happen_and_can_be_carried_out() -> None:
    planned = {f.kind for seed in SEEDS for f in plan_faults(seed, 180.0, ALL)}
    (upgrade,) = {
        fault.kind for fault in plan_faults(1, 180.0, upgrades=True)[:1]
    } - planned

    assert {*KINDS, *SECURITY_KINDS, *CLOCK_KINDS} == planned
    assert {*planned, upgrade} == set(Faults.WAYS)


def test_runs_without_tls_and_libfaketime_have_other_faults_only() -> None:
    assert KINDS == kinds_of(has_tls=False, has_clocks=False)
    assert set(CLOCK_KINDS).isdisjoint(kinds_of(has_tls=True, has_clocks=False))
    assert set(SECURITY_KINDS).isdisjoint(kinds_of(has_tls=False, has_clocks=True))


def test_one_broker_is_down_at_a_time() -> None:
    for seed in SEEDS:
        down = [f for f in plan_faults(seed, 180.0) if f.kind in BROKER_KINDS]
        assert all(a.end < b.at for a, b in zip(down, down[1:], strict=False))


def test_seed_decides_the_kind() -> None:
    assert history_of(7) == history_of(7)
    count = len(ROTATION)
    assert list(ROTATION) == [history_of(seed).kind for seed in range(count)]
    assert "loop" == history_of(count).kind


def test_only_programs_that_can_have_tls() -> None:
    allowed = {history_of(n).kind for n in range(100) if history_of(n).allows_tls}

    assert set(ROTATION) - {"redrive", "taskiq", "spark"} == allowed


def test_each_kind_meets_each_setting() -> None:
    for kind in ROTATION:
        all_of = [history_of(seed, kind) for seed in SEEDS]
        assert {True, False} == {each.keeps_ids for each in all_of}
        assert {"4.3.0", "4.4.0"} == {each.version for each in all_of}
        assert kind == "keys" or any(each.has_retry_topic for each in all_of)


def test_records_crash_in_each_way_of_processing_and_without_dead_letters() -> None:
    all_of = [history_of(seed, "crash") for seed in SEEDS]

    assert set(CRASHING) == {each.handler for each in all_of}
    assert any(not each.has_dead_letters for each in all_of)
    assert any(each.has_retry_topic for each in all_of)
    assert all(each.keeps_ids for each in all_of if each.handler == "taskiq")
    assert all(history_of(seed, "keys").has_dead_letters for seed in SEEDS)


def test_records_that_crash_are_rare_and_of_each_way() -> None:
    plans = Counter(plan_of(number, "crash") for number in range(16_000))

    assert {2} == {plans[plan] for plan in CRASHES.values()}
    assert {"succeed"} == {plan_of(number) for number in CRASHES}
