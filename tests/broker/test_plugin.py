"""The fixtures of the installed pytest plugin."""

import re
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from sharecons.testing import EmbeddedBroker
from tests.guides import Guide

PLUGIN = "sharecons.testing.pytest_plugin"
INSTALLED = any(each.value == PLUGIN for each in entry_points(group="pytest11"))

PYTEST = [sys.executable, "-m", "pytest", "-q", "-W", "error"]
PYTEST += ["-p", "no:cacheprovider", "-p", "no:asyncio"]

USE = """
import socket
import anyio
import pytest

def connect(broker):
    for address in broker.brokers.values():
        host, port = address.split(":")
        socket.create_connection((host, int(port)), timeout=5).close()

def test_plain(share_broker):
    share_broker.create_topic("orders")
    connect(share_broker)

def test_nothing_is_left_of_the_test_before(share_broker):
    share_broker.create_topic("orders")

def test_three(share_cluster):
    assert [1, 2, 3] == list(share_cluster.brokers)
    connect(share_cluster)

@pytest.mark.anyio
async def test_async(share_broker):
    connect(share_broker)
"""

CLOCK = """
import time
import anyio
import pytest
from sharecons.testing import EmbeddedBroker

@pytest.fixture
def anyio_backend(virtual_clock):
    return virtual_clock

@pytest.mark.anyio
async def test_an_hour(anyio_backend):
    began = time.monotonic()
    async with EmbeddedBroker(listen=False):
        await anyio.sleep(3600)
    assert time.monotonic() - began < 60
"""

RECORDS = """
import time
import pytest
from sharecons import ShareConsumer

@pytest.mark.anyio
@pytest.mark.parametrize("brokers", ["share_broker", "share_cluster"])
async def test_first_record(brokers, request):
    broker = request.getfixturevalue(brokers)
    broker.create_topic("orders", partitions=2)
    broker.produce("orders", [b"x"])
    began = time.monotonic()
    members = []
    async with ShareConsumer("orders", group_id="g", auto_offset_reset="earliest",
                             bootstrap_servers=broker.bootstrap_servers) as consumer:
        async for record in consumer:
            break
        print(f"record after {time.monotonic() - began} s")
        began = time.monotonic()
        async with ShareConsumer(
            "orders", group_id="g", bootstrap_servers=broker.bootstrap_servers
        ) as other:
            while len(consumer.assignment) + len(other.assignment) != 2:
                await other.poll(timeout=0.01)
            print(f"shared after {time.monotonic() - began} s")
"""

VIRTUAL = """
import pytest
from sharecons.testing import virtual_time

{backend}

@pytest.mark.anyio
async def test_broker(share_broker):
    pass

@pytest.mark.anyio
async def test_broker_first(share_broker, {clock}):
    pass

@pytest.mark.anyio
async def test_broker_last({clock}, share_broker):
    pass

@pytest.mark.anyio
async def test_cluster(share_cluster):
    pass
"""

BY_FIXTURE = """
@pytest.fixture
def anyio_backend(virtual_clock):
    return virtual_clock
"""

BY_PARAMETER = """
@pytest.fixture(params=virtual_time.BACKENDS)
def anyio_backend(request):
    return virtual_time.backend(request.param)
"""


def run(tmp_path, text, *options):
    """Run tests in another pytest process."""
    (tmp_path / "test_user.py").write_text(text)
    plugin = [] if INSTALLED else ["-p", PLUGIN]
    done = subprocess.run(
        [*PYTEST, *plugin, *options, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    return done.stdout + done.stderr


@pytest.mark.slow("starts a pytest of its own", seconds=20)
def test_fixtures_work_in_sync_and_async_tests(tmp_path):
    (tmp_path / "test_clock.py").write_text(CLOCK)

    assert "7 passed" in run(tmp_path, USE)


@pytest.mark.slow("starts a pytest of its own", seconds=20)
def test_fixtures_work_without_anyio_plugin(tmp_path):
    plain = USE.partition("@pytest")[0]

    assert "3 passed" in run(tmp_path, plain, "-p", "no:anyio")


@pytest.mark.slow("starts a pytest of its own", seconds=20)
def test_fixtures_assign_partitions_in_a_tenth_of_a_second(tmp_path):
    output = run(tmp_path, RECORDS, "-s")

    assert "4 passed" in output, output
    seconds = [float(each) for each in re.findall(r"after (\S+) s", output)]
    assert len(seconds) == 8
    assert min(seconds[::2]) < 0.2  # the first record
    assert min(seconds[1::2]) < 0.2  # a second member
    assert max(seconds) < 1, seconds  # even on a slow machine; the defaults take 1.2


def test_brokers_outside_fixtures_have_kafkas_intervals():
    with EmbeddedBroker() as broker:
        settings = broker.cluster.configs

        assert "1000" == settings.group_value("g", "share.assignment.interval.ms")
        assert "5000" == settings.group_value("g", "share.heartbeat.interval.ms")


@pytest.mark.slow("starts a pytest of its own", seconds=20)
@pytest.mark.parametrize(
    "backend", [BY_FIXTURE, BY_PARAMETER], ids=["fixture", "parameter"]
)
def test_broker_fixtures_on_a_virtual_clock_fail_with_a_hint(tmp_path, backend):
    text = VIRTUAL.format(backend=backend, clock="anyio_backend")

    output = run(tmp_path, text)

    assert "8 errors" in output, output
    assert output.count("share_broker cannot be used on a virtual clock") >= 6
    assert output.count("share_cluster cannot be used on a virtual clock") >= 2
    assert "Use `async with EmbeddedBroker(listen=False) as broker:`" in output


@pytest.mark.slow("starts a pytest of its own", seconds=20)
def test_broker_fixtures_with_virtual_clock_fixture_fail_with_a_hint(tmp_path):
    text = VIRTUAL.format(backend="", clock="virtual_clock")

    output = run(tmp_path, text, "-k", "first or last")

    assert "8 errors" in output, output
    assert output.count("share_broker cannot be used on a virtual clock") >= 8


@pytest.mark.slow("starts a pytest of its own", seconds=20)
def test_broker_fixture_in_sync_test_works_beside_a_virtual_backend(tmp_path):
    text = BY_FIXTURE + "def test_plain(share_broker): share_broker.create_topic('a')"

    assert "1 passed" in run(tmp_path, "import pytest\n" + text)


NO_MARKER = """
from sharecons.testing import make_record

async def charge(record):
    pass

async def test_charge():
    await charge(make_record(b"order 7"))

def test_broker(share_brokr):
    pass
"""


@pytest.mark.slow("starts a pytest of its own", seconds=20)
def test_async_test_without_a_marker_fails_with_a_hint(tmp_path):
    output = run(tmp_path, NO_MARKER)

    assert "async def functions are not natively supported" in output
    assert "anyio is installed: mark the test with @pytest.mark.anyio" in output
    assert "fixture 'share_brokr' not found" in output
    assert "share_broker, share_cluster" in output
    assert "1 failed, 1 error" in output, output


@pytest.mark.slow("starts a pytest of its own", seconds=20)
def test_async_test_without_a_marker_passes_in_the_auto_mode_of_pytest_asyncio(
    tmp_path,
):
    options = ("-p", "asyncio", "-o", "asyncio_mode=auto", "-k", "test_charge")

    assert "1 passed" in run(tmp_path, NO_MARKER, *options)


OTHER_LOOP = """
import pytest
import pytest_asyncio
from sharecons import ShareConsumer

@pytest_asyncio.fixture(loop_scope="module")
async def consumer(share_broker):
    share_broker.create_topic("orders")
    servers = share_broker.bootstrap_servers
    consumer = ShareConsumer("orders", group_id="billing", bootstrap_servers=servers)
    async with consumer:
        yield consumer

@pytest.mark.asyncio
async def test_poll(consumer):
    await consumer.poll(timeout=0.1)

@pytest.mark.asyncio(loop_scope="module")
async def test_poll_in_the_loop_of_the_fixture(consumer):
    await consumer.poll(timeout=0.1)
"""


@pytest.mark.slow("starts a pytest of its own", seconds=20)
def test_test_in_another_event_loop_than_its_fixture_fails_with_a_hint(tmp_path):
    output = run(tmp_path, OTHER_LOOP, "-p", "asyncio")

    assert "WrongThreadError" in output
    assert "a test and its fixtures need one loop" in output
    assert "1 failed, 1 passed" in output, output


@pytest.mark.slow("starts a process")
def test_plugin_imports_nothing_before_first_use():
    program = (
        f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; "
        "print(*(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    embedded = {"sharecons", "sharecons.testing", PLUGIN}
    assert embedded == set(done.stdout.split())


@pytest.mark.slow("starts a pytest of its own", seconds=20)
def test_tests_in_the_guide_pass_unchanged(tmp_path):
    first, *others = [
        each for each in Guide("testing.md").blocks if "def test_" in each
    ]
    for number, block in enumerate(others):
        (tmp_path / f"test_{number}.py").write_text(block)

    output = run(tmp_path, first)

    assert len(others) == 4
    assert "15 passed" in output, output


TAKES_FIXTURES = """
import pytest
from sharecons import ShareConsumer

{block}
@pytest.mark.{marker}
async def test_first_order({broker}, consumer):
    {broker}.produce("orders", [b"tea"])
    (record,) = await consumer.poll(timeout=10)
    assert record.value == b"tea"
"""


@pytest.mark.slow("starts a pytest of its own", seconds=20)
@pytest.mark.parametrize(
    ("page", "part", "marker", "broker"),
    [
        ("consumer-running.md", "async def consumer(", "anyio", "share_broker"),
        ("testing.md", "@pytest_asyncio.fixture", "asyncio", "broker"),
    ],
)
def test_fixtures_in_the_guides_serve_a_test(tmp_path, page, part, marker, broker):
    (block,) = (each for each in Guide(page).blocks if part in each)
    text = TAKES_FIXTURES.format(block=block, marker=marker, broker=broker)

    output = run(tmp_path, text, *(["-p", "asyncio"] if marker == "asyncio" else []))

    assert " passed" in output, output
    assert "failed" not in output, output


@pytest.mark.anyio
async def test_faults_in_the_guide_are_accepted():
    page = Guide("testing.md")
    (number,) = (n for n, each in enumerate(page.blocks) if "broker.faults.on(" in each)
    async with EmbeddedBroker(listen=False) as broker:
        await page.run(number, {"broker": broker, "servers": ""})
