"""The health port: status codes and metrics."""

import socket
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from anyio import to_thread

from sharecons.cli.run.health import health_port, serve_health
from sharecons.errors import ConfigurationError
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


async def get(port, path, host="127.0.0.1"):
    def request():
        try:
            with urlopen(f"http://{host}:{port}{path}", timeout=10) as response:
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


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


V4, V6 = "127.0.0.1", "[::1]"
IPV6 = pytest.mark.skipif(not has_ipv6(), reason="the system has no IPv6")


@pytest.mark.parametrize(
    ("host", "shown", "served"),
    [
        ("127.0.0.1", "127.0.0.1", [V4]),
        ("0.0.0.0", "0.0.0.0", [V4]),
        pytest.param("::1", "[::1]", [V6], marks=IPV6),
        pytest.param("::", "[::]", [V4, V6], marks=IPV6),
        ("localhost", "localhost", [V4]),
    ],
)
async def test_health_host_can_be_an_address_of_each_kind_or_a_name(
    host, shown, served
):
    urls = []
    problems = {"live": lambda: None, "ready": lambda: None}
    async with health_port(host, 0, **problems, families=list, log=urls.append):
        start, port = urls[0].rsplit(":", 1)
        assert f"http://{shown}" == start
        for address in served:
            assert (200, "ok\n") == await get(port, "/livez", address)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "", "a" * 64, "1.2.3.4"])
async def test_health_host_that_cannot_be_used_is_an_error(host):
    problems = {"live": lambda: None, "ready": lambda: None}
    with pytest.raises(ConfigurationError, match=f"cannot listen on {host}:0: "):
        async with health_port(host, 0, **problems, families=list, log=print):
            pass


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
