"""Tests run on a virtual clock, unless their module has its own `anyio_backend`."""

import pytest

from sharecons.testing.virtual_time import Backend


@pytest.fixture
def anyio_backend(virtual_clock: Backend) -> Backend:
    return virtual_clock
