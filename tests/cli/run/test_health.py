"""The health port: status codes and metrics."""

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from anyio import to_thread

from sharecons.cli.run.health import serve_health
from sharecons.metrics.families import MetricFamily

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow("the HTTP server ends within 0.5 s"),
]


class State:
    def __init__(self):
        self.problems = {"live": None, "ready": "no member of the group"}
        self.accepted = 5

    def served(self, port=0):
        return serve_health(
            "127.0.0.1",
            port,
            live=lambda: self.problems["live"],
            ready=lambda: self.problems["ready"],
            families=self.families,
        )

    def families(self):
        label = ("group",)
        return [
            MetricFamily("x_running", "gauge", "Now", label, {("billing",): 2}),
            MetricFamily(
                "x_total", "counter", "Done", label, {("billing",): self.accepted}
            ),
        ]


async def get(port, path):
    def request():
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
                return response.status, response.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    return await to_thread.run_sync(request)


async def test_pages_follow_the_state():
    state = State()
    async with state.served() as port:
        assert (200, "ok\n") == await get(port, "/livez")
        assert (503, "no member of the group\n") == await get(port, "/readyz")
        state.problems = {"live": "blocked", "ready": None}
        assert (503, "blocked\n") == await get(port, "/livez")
        assert (200, "ok\n") == await get(port, "/readyz")
        assert 404 == (await get(port, "/"))[0]


async def test_metrics_have_gauges_and_counters():
    state = State()
    async with state.served() as port:
        code, text = await get(port, "/metrics")
        state.accepted = 6
        later = (await get(port, "/metrics"))[1]

    labels = '{group="billing"}'
    assert 200 == code
    assert f"x_running{labels} 2.0" in text
    assert f"x_total{labels} 5.0" in text
    assert f"x_total{labels} 6.0" in later
    assert "# TYPE x_running gauge" in text
    assert "# HELP x_total Done." in text


async def test_port_in_use_is_an_error():
    async with State().served() as port:
        with pytest.raises(OSError):
            async with State().served(port):
                pass


async def test_port_is_free_again_when_the_block_is_left():
    async with State().served() as port:
        pass
    async with State().served(port) as again:
        assert port == again
