"""Run `sharecons` in this process, and parse its tables."""

import io
import re
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass

from sharecons.cli import main

__all__ = ["CliResult", "parse_tables", "run_cli"]


@dataclass
class CliResult:
    code: int
    out: str
    err: str

    @property
    def lines(self):
        """The lines on stderr."""
        return self.err.splitlines()


def run_cli(*args, stdin=None):
    """Run a command; return its exit code, stdout and stderr.

    Args:
        stdin: bytes; None leaves standard input unchanged.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), _replaced_stdin(stdin):
        try:
            code = main([str(arg) for arg in args])
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        sys.stderr.flush()
    texts = [each.buffer.getvalue().decode() for each in (out, err)]
    return CliResult(int(code or 0), *texts)


@contextmanager
def _replaced_stdin(content):
    replaced = sys.stdin
    if content is not None:
        sys.stdin = io.TextIOWrapper(io.BytesIO(content), "utf-8")
    try:
        yield
    finally:
        sys.stdin = replaced


def parse_tables(text):
    """Return the rows of tables of `sharecons` or of Kafka's tool.

    A table starts at a line that starts with GROUP or TOPIC.
    """
    found = []
    head = []
    for line in text.replace("COORDINATOR (ID)", "COORDINATOR ID").splitlines():
        if line.startswith(("GROUP ", "TOPIC ")):
            head = line.split()
        elif not line.strip():
            head = []
        elif head:
            found.append(dict(zip(head, re.split(r" +", line.strip()), strict=False)))
    return found
