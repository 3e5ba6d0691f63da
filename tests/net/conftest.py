import pytest

from sharecons.testing import virtual_time


@pytest.fixture(params=virtual_time.BACKENDS)
def anyio_backend(request):
    return virtual_time.backend(request.param)
