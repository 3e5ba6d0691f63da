"""`python -m sharecons.testing.kafka … -- COMMAND`, as in docs/start.md."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sharecons.testing.kafka.ports import free_ports

pytestmark = [pytest.mark.kafka, pytest.mark.slow("starts a Kafka")]

ROOT = Path(__file__).parent.parent.parent


def test_command_of_the_start_page_consumes_every_record() -> None:
    page = (ROOT / "docs" / "start.md").read_text()
    (arguments,) = re.findall(r"(?m)^python (-m sharecons.testing.kafka .*)$", page)
    words = [sys.executable if word == "python" else word for word in arguments.split()]
    (port,) = free_ports(1)
    words[2:2] = ["--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    printed = b""
    end = time.monotonic() + 90
    try:
        while printed.count(b"b'job ") < 1000 and time.monotonic() < end:
            if select.select([process.stdout], [], [], 0.1)[0]:
                printed += os.read(process.stdout.fileno(), 1 << 16)
        process.send_signal(signal.SIGINT)
        printed += process.communicate(timeout=30)[0]
    finally:
        process.kill()
        process.wait()

    assert process.returncode == 0
    assert len(set(re.findall(rb"job \d+", printed))) == 1000
    assert printed.endswith(b"closed\n")
