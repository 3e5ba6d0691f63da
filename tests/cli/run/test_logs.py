"""Log lines and the status line of `sharecons run` on a terminal."""

import fcntl
import io
import logging
import os
import pty
import struct
import sys
import termios
from contextlib import contextmanager, suppress

import pytest

from sharecons.cli.run.logs import StatusLine
from tests.cli.processes import read_until


@contextmanager
def on_terminal(monkeypatch):
    """The other end of a terminal with 40 columns, which is stderr."""
    outside, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    with open(inside, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        yield outside
    os.close(outside)


def record_with(message, error=None):
    info = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("app", logging.WARNING, "", 0, message, (), info)


def shown(record):
    status = StatusLine()
    status.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    status.emit(record)


def test_traceback_has_a_line_for_each_of_its_lines(monkeypatch):
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    try:
        raise ValueError("bad \x1b[2J")
    except ValueError as error:
        shown(record_with("record rejected", error))

    first, second, *_, last = stderr.getvalue().splitlines()
    assert "WARNING record rejected" == first
    assert "    Traceback (most recent call last):" == second
    assert "    ValueError: bad \\x1b[2J" == last


def test_message_with_a_line_break_does_not_imitate_a_log_line(monkeypatch):
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    shown(record_with("order tea\nERROR the disk is full"))

    lines = stderr.getvalue().splitlines()
    assert ["WARNING order tea", "    ERROR the disk is full"] == lines


class NoCause(Exception):
    __cause__ = property(lambda self: 1 / 0)


def test_exception_that_cannot_be_formatted_costs_its_line_only(monkeypatch):
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    try:
        raise NoCause
    except NoCause as error:
        shown(record_with("order failed", error))

    line = "WARNING app: line 0 of  was not formatted: ZeroDivisionError\n"
    assert line == stderr.getvalue()


def test_lines_for_a_terminal_that_is_closed_are_discarded(monkeypatch):
    outside, inside = pty.openpty()
    with suppress(OSError), open(inside, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        os.close(outside)

        status = StatusLine()
        status.show("10 records/s")
        status.emit(record_with("order failed"))

        with pytest.raises(OSError):
            os.write(inside, b"x")
        monkeypatch.undo()


def test_status_line_is_cut_at_the_width_of_the_terminal(monkeypatch):
    with on_terminal(monkeypatch) as terminal:
        status = StatusLine()
        status.show("0123456789" * 5 + "end")
        status.emit(record_with("next"))
        text = read_until(terminal, b"next").decode()

    assert f"\r\x1b[K{'0123456789' * 3}012345678\r\x1b[K" in text
