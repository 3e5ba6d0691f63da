"""Which tests a run has, and which pytest process runs them; tox.ini has the tiers.

SHARECONS_TEST_THOROUGH=1    tests marked `thorough`, long searches with Hypothesis, and
                             on a real Kafka both event loops and `client_only`
SHARECONS_TEST_LOOPS=asyncio no test on trio, where a run is about something else

Without these, tests marked `thorough` are left out. On a real Kafka tests run on
asyncio only, except those marked `both_loops`: which loop waits for a socket does not
depend on the broker, so trio is tested on the embedded one. Tests marked `client_only`
run on the embedded broker only. Where a real Kafka runs a
test on asyncio, the embedded broker does not. Tests of the examples and of other
processes, or with a Spark session or a Spark cluster, run on one broker, the real one
if there is one.

The embedded broker behaves like Kafka EMBEDDED. On another version, comparisons of the
two (tests/broker) are left out, except those marked `newer_kafka`.
"""

import os
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.kafka_plugin import BROKERS, EMBEDDED, VERSION

__all__ = ["THOROUGH"]

THOROUGH: Final = os.environ.get("SHARECONS_TEST_THOROUGH", "") not in ("", "0")
ASYNCIO_ONLY: Final = os.environ.get("SHARECONS_TEST_LOOPS") == "asyncio"
LOOPS: Final = ("anyio_backend", "virtual_clock")  # fixtures
KAFKA_FIXTURES: Final = ("any_kafka", "any_kafka3")
CLUSTERS: Final = {"kafka3", "any_kafka3", "real_kafka3"}  # fixtures
SPARK: Final = Path(__file__).parent / "spark"
ON_ONE_BROKER: Final = {
    Path(__file__).parent / name
    for name in (
        "test_examples.py",
        "scenarios/test_killed_redrive.py",
        "scenarios/test_plain_asyncio.py",
        "scenarios/test_processes.py",
    )
}
SPARKS: Final = {"spark", "spark_cluster"}  # fixtures
COMPARISONS: Final = Path(__file__).parent / "broker"

KAFKAS: Final = 2
"""How many pytest processes have a real Kafka of one broker. Their tests mostly wait,
so they run side by side; more would be short of memory and CPU."""

LONG_GROUPS: Final = ("kafka-0", "kafka-1", "spark")

SEARCH_TIMEOUT: Final = 7200
"""Seconds for a search with Hypothesis in the thorough tier, which takes minutes.
Hypothesis reports a timeout as a failing example, and starts to shrink it."""

EARLY: Final = 0.4
"""The part of the quick tests that starts before the short groups."""

settings.register_profile(
    "quick",
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", parent=settings.get_profile("quick"), max_examples=2000
)
settings.load_profile("thorough" if THOROUGH else "quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    left_out = [item for item in items if _is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    if THOROUGH:
        _allow_long_searches(items)
    _group(items)
    if getattr(config.option, "loadgroup", False):
        items[:] = _in_order_of_start(items)


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")
def check_groups(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fail if pytest-xdist has not added the groups to the ids of tests.

    It silently does not with a pytest that it does not know: each process then starts
    brokers and a Spark session of its own.
    """
    if getattr(config.option, "loadgroup", False):
        for item in items:
            if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
                raise pytest.UsageError(
                    f"pytest {pytest.__version__} hides groups from pytest-xdist"
                )


def _is_left_out(item: pytest.Item) -> bool:
    has = item.get_closest_marker
    if has("thorough") and not THOROUGH:
        return True
    if has("client_only") and has("kafka") and not THOROUGH:
        return True
    if _is_repeated(item):
        return True
    if _is_on_trio(item):
        if ASYNCIO_ONLY:
            return True
        if has("kafka") and not (THOROUGH or has("both_loops")):
            return True
    return bool(
        has("kafka")
        and VERSION != EMBEDDED
        and item.path.is_relative_to(COMPARISONS)
        and not has("newer_kafka")
    )


def _is_repeated(item: pytest.Item) -> bool:
    """Return whether a real Kafka runs the same test in this run.

    A test on both event loops then runs on the embedded broker on trio only: the real
    Kafka has asyncio.
    """
    call = getattr(item, "callspec", None)
    if call is None or BROKERS != "both" or THOROUGH:
        return False
    if item.get_closest_marker("client_only"):
        return False
    if "embedded" not in (call.params.get(name) for name in KAFKA_FIXTURES):
        return False
    if _uses_spark(item) or item.path in ON_ONE_BROKER:
        return True
    return "asyncio" in (call.params.get(name) for name in LOOPS)


def _uses_spark(item: pytest.Item) -> bool:
    return bool(SPARKS & set(getattr(item, "fixturenames", ())))


def _is_on_trio(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    return call is not None and any(call.params.get(name) == "trio" for name in LOOPS)


def _allow_long_searches(items: list[pytest.Item]) -> None:
    for item in items:
        is_search = isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)
        if is_search and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SEARCH_TIMEOUT))


def _group(items: list[pytest.Item]) -> None:
    """Group the tests that share brokers or a Spark session, for `--dist loadgroup`."""
    modules: dict[Path, int] = {}
    for item in items:
        if group := _group_of(item, modules):
            item.add_marker(pytest.mark.xdist_group(group))


def _in_order_of_start(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in the order in which pytest-xdist hands them to processes.

    Each process gets one group of the first ones, and the last process quick tests: so
    the first failing test is seen early. The short groups come in the middle: at the
    end, the other processes would wait for them.
    """
    groups: dict[str | None, list[pytest.Item]] = {}
    for item in items:
        marker = item.get_closest_marker("xdist_group")
        groups.setdefault(marker.args[0] if marker else None, []).append(item)
    quick = groups.pop(None, [])
    first = [groups.pop(name, []) for name in LONG_GROUPS]
    early = round(len(quick) * EARLY)
    parts = [*first, quick[:early], *groups.values(), quick[early:]]
    return [item for part in parts for item in part]


def _group_of(item: pytest.Item, modules: dict[Path, int]) -> str | None:
    """Return the group of a test; None if any process can run it."""
    fixtures = set(getattr(item, "fixturenames", ()))
    if _uses_spark(item):
        return "spark"
    if item.get_closest_marker("kafka"):
        if fixtures & CLUSTERS:
            return "kafka-cluster"
        turn = modules.setdefault(item.path, len(modules))
        return f"kafka-{turn % KAFKAS}"
    # Drivers of Spark have a JVM each: one at a time.
    is_driver = item.path.is_relative_to(SPARK) and item.get_closest_marker("slow")
    return "spark-drivers" if is_driver else None
