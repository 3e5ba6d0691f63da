"""The fixtures that pytest finds once the package is installed."""

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

GUIDE = Path(__file__).parent.parent.parent / "docs" / "testing.md"
PLUGIN = "sharecons.testing.pytest_plugin"
INSTALLED = any(each.value == PLUGIN for each in entry_points(group="pytest11"))

PYTEST = [sys.executable, "-m", "pytest", "-q", "-W", "error"]
PYTEST += ["-p", "no:cacheprovider", "-p", "no:asyncio"]

USE = """
import socket
import anyio
import pytest

def ask(broker):
    for address in broker.brokers.values():
        host, port = address.split(":")
        socket.create_connection((host, int(port)), timeout=5).close()

def test_plain(share_broker):
    share_broker.create_topic("orders")
    ask(share_broker)

def test_nothing_is_left_of_the_test_before(share_broker):
    share_broker.create_topic("orders")

def test_three(share_cluster):
    assert [1, 2, 3] == list(share_cluster.brokers)
    ask(share_cluster)

@pytest.mark.anyio
async def test_async(share_broker):
    ask(share_broker)
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


def run(tmp_path, text, *options):
    """Run tests in a pytest of their own."""
    (tmp_path / "test_user.py").write_text(text)
    plugin = [] if INSTALLED else ["-p", PLUGIN]
    done = subprocess.run(
        [*PYTEST, *plugin, *options, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_brokers_serve_plain_and_async_tests_and_clocks_jump(tmp_path):
    (tmp_path / "test_clock.py").write_text(CLOCK)

    assert "7 passed" in run(tmp_path, USE)


@pytest.mark.slow
def test_fixtures_do_without_the_plugin_of_anyio(tmp_path):
    plain = USE.partition("@pytest")[0]

    assert "3 passed" in run(tmp_path, plain, "-p", "no:anyio")


def test_plugin_loads_nothing_before_a_test_asks():
    program = (
        f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; "
        "print(*(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    ours = {"sharecons", "sharecons.testing", PLUGIN}
    assert ours == set(done.stdout.split())


def test_the_guides_first_test_passes_as_it_stands(tmp_path):
    block, *_ = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)

    said = run(tmp_path, block)

    assert "2 passed" in said, said
