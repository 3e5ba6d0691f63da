"""The fuzzer finds planted faults, shrinks them, and saves them."""

import subprocess
import sys

import pytest
from hypothesis import strategies as st

from tests.fuzz.corpus import decode_case, encode_case, read_case, save_case
from tests.fuzz.search import search
from tests.fuzz.target import Target

pytestmark = pytest.mark.slow("a search")


def target(check, cases=None, **limits):
    return Target(
        name="planted",
        cases=st.binary(max_size=8) if cases is None else cases,
        check=check,
        modules=(),
        **limits,
    )


def read_nothing(case):
    """Read a case without a fault."""


def read_the_third_byte(case):
    if case[:1] > b"\x7f":
        case[2]


def loop_for_ever(case):
    while case[:1] > b"\x7f":
        pass


def loop_for_ever_and_catch_everything(case):
    while case[:1] > b"\x7f":
        try:
            sum(range(100))
        except Exception:
            continue


def allocate(case):
    if case[:1] > b"\x7f":
        bytearray(64 << 20)


def break_a_rule(case):
    assert case[:1] <= b"\x7f", "the first byte is small"


def fail_in_two_ways(case):
    if case[:1] > b"\x7f":
        raise KeyError
    if len(case) > 2:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("check", "kind"),
    [
        (read_the_third_byte, "IndexError"),
        (loop_for_ever, "LimitError: time"),
        (loop_for_ever_and_catch_everything, "LimitError: time"),
        (allocate, "LimitError: memory"),
        (break_a_rule, "AssertionError"),
    ],
)
def test_search_of_a_target_with_a_fault_finds_it(check, kind):
    seconds = 1.0 if check is allocate else 0.02
    limits = {"seconds": seconds, "memory": 1 << 20}
    report = search(target(check, **limits), seed=1, examples=100)

    (escape,) = report.escapes
    assert escape.kind.startswith(kind)
    assert b"\x80" == escape.case, "shrunk"


def test_search_of_a_target_without_faults_draws_all_cases():
    report = search(target(read_nothing), seed=1, examples=100)

    assert [] == report.escapes
    assert 100 == report.executions


def test_search_with_the_same_seed_draws_the_same_cases():
    drawn = []

    def keep(case):
        drawn.append(case)

    search(target(keep), seed=5, examples=50)
    first = drawn.copy()
    drawn.clear()
    search(target(keep), seed=5, examples=50)

    assert first == drawn


def test_search_after_an_escape_finds_the_next_kind():
    report = search(target(fail_in_two_ways), seed=1, examples=300)

    kinds = {each.kind.partition(" ")[0] for each in report.escapes}
    assert {"KeyError", "ZeroDivisionError"} == kinds


LOOPS = """
import anyio
from tests.fuzz.search import execute
from tests.fuzz.test_engine import target

async def spin():
    while True:
        await anyio.lowlevel.checkpoint()

anyio.run(anyio.sleep, 0)  # imports are no part of an execution
for _ in range(8):
    escape = execute(target(lambda case: anyio.run(spin), seconds=0.02), b"")
    print(escape.kind)
"""


def test_interrupted_event_loop_ends():
    # In a process of its own: tasks that were interrupted raise in later tests.
    command = [sys.executable, "-c", LOOPS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert ["LimitError: time"] * 8 == ended.stdout.splitlines(), ended.stderr


@pytest.mark.parametrize(
    "case",
    [
        None,
        [1, -1.5, True, "\ud800", b"\0\xff"],
        {"a": [b"x"], "hex": b"y", "pairs": [["a", 1]]},
        {"hex": "00"},
        [["ShareFetch", 0, "field", 3, 4]],
    ],
)
def test_saved_case_is_read_again(case, tmp_path):
    path = save_case(case, "planted", tmp_path)

    assert case == read_case(path)
    assert case == decode_case(encode_case(case))
