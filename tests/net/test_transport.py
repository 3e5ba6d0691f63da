"""Mapping of socket errors to the library's, with the failed action."""

import ssl
from socket import gaierror

import anyio
import pytest

from sharecons.errors import (
    ConfigurationError,
    ConnectionFailedError,
    RequestTimedOutError,
)
from sharecons.net.io.transport import ErrorMapping


def raised(error):
    with pytest.raises(BaseException) as caught, ErrorMapping("connecting to b:1"):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (ConnectionResetError(104, "Connection reset by peer"), "reset by peer"),
        (TimeoutError(110, "Connection timed out"), "Connection timed out"),
        (OSError("All connection attempts failed"), "attempts failed"),
        (OSError(), "OSError"),
        (ssl.SSLError(1, "wrong version number"), "wrong version number"),
        (gaierror(8, "nodename nor servname provided"), "nodename nor servname"),
        (anyio.EndOfStream(), "the broker closed the connection"),
        (anyio.BrokenResourceError(), "BrokenResourceError"),
        (anyio.ClosedResourceError(), "ClosedResourceError"),
    ],
)
def test_stream_errors_become_connection_errors(error, expected):
    got = raised(error)

    assert type(got) is ConnectionFailedError
    assert str(got).startswith("connecting to b:1: ")
    assert expected in str(got)
    assert error is got.__cause__


def test_timeout_becomes_request_timed_out():
    got = raised(TimeoutError())

    assert type(got) is RequestTimedOutError
    assert "connecting to b:1: no response in time" == str(got)


def test_innermost_system_error_is_reported():
    outer = OSError("All connection attempts failed")
    outer.__cause__ = ExceptionGroup(
        "several", [ConnectionRefusedError(111, "Connection refused"), OSError("b")]
    )

    assert "connecting to b:1: Connection refused" == str(raised(outer))


@pytest.mark.parametrize(
    "error",
    [
        ConfigurationError("of the library"),
        ConnectionFailedError("lost"),
        ValueError("a bug"),
    ],
)
def test_library_errors_and_bugs_pass_unchanged(error):
    assert error is raised(error)
