"""The files of docs/deployment: their options, ports, probes and times fit the code."""

import argparse
import configparser
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sharecons.cli import parser
from sharecons.cli.run.supervisor import KILLED_AFTER, MARGIN
from sharecons.testing.kafka.ports import free_ports
from tests.cli.run.running import new_broker, running
from tests.prometheus.exported import exporter_families

yaml = pytest.importorskip("yaml")

FILES = Path(__file__).parents[1] / "docs" / "deployment"
ENDING = MARGIN + KILLED_AFTER
"""Seconds after the grace period in which all processes of a command end."""

COMMAND = ["sharecons", "run", "app:handle"]
SERVERS = ["--bootstrap-server=localhost:9092"]
HANDLER = """
import anyio

async def handle(record):
    while not await anyio.Path("go").exists():
        await anyio.sleep(0.02)
"""
"""It ends once the file `go` exists."""

RUNNING = 'sharecons_worker_records_running{group="billing"} 20.0'


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((FILES / name).read_text()))


def pod(name: str) -> Any:
    return documents(name)[0]["spec"]["template"]["spec"]


def container(name: str) -> Any:
    (only,) = pod(name)["containers"]
    return only


def image() -> dict[str, list[str]]:
    """Return the commands of the Dockerfile that are lists, by instruction."""
    lists = re.findall(r"^(ENTRYPOINT|CMD) (\[.*\])$", text("Dockerfile"), re.MULTILINE)
    return {name: json.loads(words) for name, words in lists}


def text(name: str) -> str:
    return (FILES / name).read_text()


def unit() -> configparser.SectionProxy:
    units = configparser.ConfigParser(interpolation=None)
    units.optionxform = str  # type: ignore[assignment,method-assign]
    units.read_string(text("sharecons-worker.service"))
    return units["Service"]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield the arguments of each `sharecons run`, and the name of its file."""
    yield "Dockerfile", image()["CMD"]
    yield "worker.yaml", container("worker.yaml")["args"]
    yield "compose.yaml", documents("compose.yaml")[0]["services"]["worker"]["command"]
    words = shlex.split(unit()["ExecStart"])
    assert ["run", "app:handle"] == words[1:3]
    yield "sharecons-worker.service", words[3:]


def parsed(arguments: list[str]) -> argparse.Namespace:
    return parser().parse_args([*COMMAND[1:], *arguments, *SERVERS])


@pytest.mark.parametrize(("name", "arguments"), [*commands()])
def test_arguments_are_options_of_the_command(name: str, arguments: list[str]) -> None:
    options = parsed(arguments)

    assert ("billing", 9931) == (options.group, options.health_port), name


def test_image_starts_the_command_as_process_1() -> None:
    assert image()["ENTRYPOINT"] == COMMAND


def test_time_to_stop_is_above_the_grace_period() -> None:
    stop = documents("compose.yaml")[0]["services"]["worker"]["stop_grace_period"]
    limits = {
        "worker.yaml": pod("worker.yaml")["terminationGracePeriodSeconds"],
        "compose.yaml": int(stop.removesuffix("s")),
        "sharecons-worker.service": int(unit()["TimeoutStopSec"]),
    }
    given = {name: parsed(arguments) for name, arguments in commands()}

    for name, limit in limits.items():
        assert limit > given[name].grace + ENDING, name
    handler_timeout = given["worker.yaml"].handler_timeout
    assert handler_timeout is not None
    assert handler_timeout < given["worker.yaml"].grace
    assert unit()["KillMode"] == "mixed"


def test_probes_request_pages_of_the_open_port() -> None:
    worker = container("worker.yaml")
    (port,) = worker["ports"]
    options = parsed(worker["args"])
    probes = {
        probe: worker[f"{probe}Probe"]["httpGet"]
        for probe in ("startup", "liveness", "readiness")
    }

    assert (options.health_host, options.health_port) == (
        "0.0.0.0",
        port["containerPort"],
    )
    assert {each["port"] for each in probes.values()} == {port["name"]}
    assert {name: each["path"] for name, each in probes.items()} == {
        "startup": "/livez",
        "liveness": "/livez",
        "readiness": "/readyz",
    }


def test_names_that_objects_refer_to_exist() -> None:
    deployment, budget = documents("worker.yaml")
    (scaled,) = documents("keda.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for name in ("worker.yaml", "exporter.yaml"):
        volumes = {each["name"] for each in pod(name)["volumes"]}
        mounts = container(name)["volumeMounts"]
        assert volumes == {each["name"] for each in mounts}
        settings = {each["name"]: each for each in container(name)["env"]}
        file = settings["SHARECONS_COMMAND_CONFIG"]["value"]
        assert Path(file).parent == Path(mounts[0]["mountPath"])
    variables = re.findall(r"\$\((\w+)\)", " ".join(container("worker.yaml")["args"]))

    assert variables == ["POD_NAME"]
    assert "POD_NAME" in {each["name"] for each in container("worker.yaml")["env"]}
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert budget["spec"]["selector"]["matchLabels"] == labels
    assert scaled["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]


def test_prometheus_scrapes_the_ports_and_keda_reads_a_metric_of_the_exporter() -> None:
    ports = [
        container(name)["ports"][0]["name"] for name in ("worker.yaml", "exporter.yaml")
    ]
    (job,) = documents("prometheus.yml")[0]["scrape_configs"]
    (trigger,) = documents("keda.yaml")[0]["spec"]["triggers"]
    exporter = container("exporter.yaml")
    options = parser().parse_args(
        [*exporter["command"][1:], *exporter["args"], *SERVERS]
    )

    assert "|".join(ports) == job["relabel_configs"][0]["regex"]
    assert options.port == exporter["ports"][0]["containerPort"]
    metric = re.findall(r"\w+(?=\{group=)", trigger["metadata"]["query"])
    assert set(metric) < {family.name for family in exporter_families()}


@pytest.mark.slow("starts a process that imports the package, and drains it")
def test_probes_follow_the_worker_from_its_start_to_its_end(tmp_path: Path) -> None:
    """Run the command of worker.yaml: `running` adds its topic and its group."""
    (port,) = free_ports(1)
    arguments = [
        each.replace("9931", str(port))
        for each in container("worker.yaml")["args"]
        if not each.startswith(("--topic", "--group", "--dead-letter"))
    ]

    def get(path: str) -> Any:
        return command.get(path, url=f"http://127.0.0.1:{port}")

    with (
        new_broker(records=20) as broker,
        running(broker, tmp_path, "app:handle", *arguments, app=HANDLER) as command,
    ):
        command.wait_until(lambda: get("/livez"))
        command.wait_until(lambda: (200, "ok\n") == get("/readyz"))
        broker.stop_broker(1)
        command.wait_until(lambda: get("/readyz")[1].startswith("disconnected: "))
        assert (200, "ok\n") == get("/livez"), "a restart does not end an outage"
        broker.start_broker(1)
        command.wait_until(lambda: (200, "ok\n") == get("/readyz"))
        command.wait_until(lambda: RUNNING in get("/metrics")[1])
        command.process.terminate()
        command.wait_until(lambda: command.events("worker stops"))
        drained = [get("/readyz"), get("/livez")]
        (tmp_path / "go").touch()
        code = command.process.wait(30)

    assert [(503, "stopping: the worker is stopping\n"), (200, "ok\n")] == drained
    assert 0 == code
    assert command.events("worker ended")[0]["released"] == 0
