"""The kills of a run."""

import pytest

from tests.soak.schedule import ROLES, plan_kills, warm_up


def test_long_run_has_a_kill_every_ten_minutes_in_turn() -> None:
    kills = plan_kills(8 * 3600)

    assert [600.0 * n for n in range(1, 48)] == [kill.at for kill in kills]
    assert (*ROLES, *ROLES) == tuple(kill.role for kill in kills[:8])
    assert [0, 1] == [kill.turn for kill in kills if kill.role == "leader"][:2]
    assert {20.0} == {kill.down for kill in kills}


@pytest.mark.parametrize("seconds", [60.0, 720.0, 3000.0])
def test_short_run_has_all_kinds_of_kills(seconds: float) -> None:
    kills = plan_kills(seconds)

    assert set(ROLES) == {kill.role for kill in kills}
    assert all(
        kill.at + kill.down < after.at
        for kill, after in zip(kills, kills[1:], strict=False)
    )
    assert kills[-1].at + kills[-1].down < seconds


def test_warm_up_is_an_eighth_or_an_hour() -> None:
    assert [90.0, 3600.0, 3600.0] == [warm_up(h * 3600) for h in (0.2, 8, 24)]
