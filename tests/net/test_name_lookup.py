"""Look-ups of host names: a resolver that hangs delays no end of a process."""

import os
import socket
import subprocess
import sys
import threading
import time

import anyio
import pytest

from sharecons.net.io.name_lookup import look_up

HANG = 12.0
"""Seconds for which the resolver hangs: longer than a process is allowed to take."""

START = 8.0
"""Seconds to start a process on a busy machine."""

SLOW_RESOLVER = f"""
import socket, sys, time

def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
    if not flags & socket.AI_NUMERICHOST:  # trio tries that first
        time.sleep({HANG})
    raise socket.gaierror(-3, "Temporary failure in name resolution")

socket.getaddrinfo = getaddrinfo
"""

COMMAND = """
from sharecons.cli import main
sys.exit(main([*sys.argv[1:], "--bootstrap-server", "kafka.example:9092"]))
"""

ADMIN = """
from sharecons import ShareGroupAdmin
from sharecons.errors import ConnectionFailedError

async def main():
    try:
        admin = ShareGroupAdmin(bootstrap_servers="kafka.example:9092", timeout=1)
        async with admin:
            await admin.list_groups()
    except ConnectionFailedError as error:
        print(error, file=sys.stderr)

"""

CONSUMER = """
import anyio
from sharecons import ShareConsumer

async def main():
    with anyio.move_on_after(1):
        async with ShareConsumer(
            "orders", group_id="g", bootstrap_servers="kafka.example:9092"
        ):
            pass

"""

TOKENS = """
import anyio
from sharecons.properties.tokens import from_endpoint

async def main():
    with anyio.move_on_after(1):
        await from_endpoint("http://tokens.example/", "me", "secret")()

"""

ASYNCIO = "import asyncio\nasyncio.run(main())"
TRIO = "import trio\ntrio.run(main)"

pytestmark = pytest.mark.slow("starts a process, and waits for a timeout")


def run(program, *arguments):
    """Run a program whose resolver hangs; return its result and its seconds."""
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", SLOW_RESOLVER + program, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return ended, time.monotonic() - began


@pytest.mark.parametrize(
    "command",
    [
        "groups list --timeout 1s",
        "groups inspect billing --timeout 1s",
        "peek orders --timeout 1s",
        "preflight --timeout 1s",
        "produce --topic orders --timeout 1s",
        "consume --topic orders --group billing --timeout 1s",
    ],
)
def test_command_whose_resolver_hangs_ends_in_time(command):
    ended, took = run(COMMAND, *command.split())

    assert 3 == ended.returncode, ended.stderr
    assert "kafka.example:9092" in ended.stderr
    assert took < START


@pytest.mark.parametrize("loop", [ASYNCIO, TRIO], ids=["asyncio", "trio"])
@pytest.mark.parametrize(
    "program", [ADMIN, CONSUMER, TOKENS], ids=["admin", "consumer", "tokens"]
)
def test_program_whose_resolver_hangs_ends_in_time(program, loop):
    ended, took = run(program + loop)

    assert 0 == ended.returncode, ended.stderr
    assert took < START


@pytest.fixture
def resolver(monkeypatch):
    """A resolver that hangs until `release` is set; it counts its calls."""

    class Resolver:
        calls = 0
        release = threading.Event()

        def __call__(self, host, port, *_, **__):
            self.calls += 1
            self.release.wait(10)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    resolver = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    yield resolver
    resolver.release.set()


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.anyio
async def test_retries_share_one_look_up(resolver):
    for _ in range(3):
        with anyio.move_on_after(0.01):
            await look_up("kafka.example", 9092)
    assert 1 == resolver.calls

    resolver.release.set()
    (found,) = await look_up("kafka.example", 9092)
    assert ("127.0.0.1", 9092) == found[4]


@pytest.mark.anyio
async def test_look_up_after_the_end_of_another_calls_the_resolver_again(resolver):
    resolver.release.set()
    await look_up("kafka.example", 9092)
    await look_up("kafka.example", 9092)

    assert 2 == resolver.calls


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "fe80::1%1"])
async def test_addresses_are_not_looked_up(host):
    before = threading.active_count()
    ((*_, address),) = await look_up(host, 9092)

    assert (host.partition("%")[0], 9092) == (address[0].partition("%")[0], address[1])
    assert before == threading.active_count()


@pytest.mark.anyio
async def test_unknown_name_raises():
    with pytest.raises(socket.gaierror):
        await look_up("kafka.invalid", 9092)


@pytest.mark.anyio
async def test_invalid_name_raises():
    with pytest.raises(UnicodeError):
        await look_up("käfka..example", 9092)
