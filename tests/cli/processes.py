"""Commands in processes of their own, with pipes or a terminal."""

import os
import pty
import subprocess
import sys
from contextlib import contextmanager

__all__ = ["end", "on_terminal", "read_until", "start"]

TIMEOUT = 30.0


@contextmanager
def start(broker, *args, **options):
    """Start a command on a broker; kill it at the end, if it still runs."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    where = ("--bootstrap-server", broker.bootstrap_servers)
    process = subprocess.Popen(
        [sys.executable, "-m", "sharecons", *map(str, args), *where],
        **{**streams, **options},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def end(process, data=None):
    """Wait for the end; return exit code, stdout and the lines of stderr."""
    out, err = process.communicate(data, timeout=TIMEOUT)
    return process.returncode, out, err.decode().splitlines()


@contextmanager
def on_terminal(broker, *args):
    """Start a command in a terminal; yield it and the terminal's other end."""
    outside, inside = pty.openpty()
    try:
        with start(broker, *args, stdin=inside, stdout=inside) as process:
            os.close(inside)
            yield process, outside
    finally:
        os.close(outside)


def read_until(fd, end):
    """Read from a terminal until some bytes appear; return all."""
    found = b""
    while end not in found:
        found += os.read(fd, 4096)
    return found
