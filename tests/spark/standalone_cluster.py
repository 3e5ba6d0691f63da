"""A standalone cluster of Spark: a master and workers, as processes on loopback.

Each has a working directory of its own. Programs are submitted by commands of
docs/spark-running.md, in the environment of a user: without PYTHONPATH, and with this
Python as `python3`.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyspark

from sharecons.testing.kafka.ports import free_ports
from tests.waiting import until_true

__all__ = ["Program", "StandaloneCluster", "commands_of", "processes_of_session"]

ROOT = Path(__file__).parent.parent.parent
SPARK_HOME = Path(pyspark.__file__).parent
WORKERS = 2
START_TIMEOUT = 120.0

# Small heaps, and no fully optimized code: the programs are short.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
DEFAULTS = f"""
spark.driver.memory 512m
spark.driver.host 127.0.0.1
spark.driver.extraJavaOptions {JAVA_OPTIONS}
spark.executor.memory 512m
spark.executor.extraJavaOptions {JAVA_OPTIONS}
spark.executor.heartbeatInterval 2s
spark.sql.shuffle.partitions 2
spark.ui.enabled false
"""


def commands_of(title):
    """Return the commands of a section of the guide: its indented blocks."""
    page = (ROOT / "docs" / "spark-running.md").read_text()
    section = page.split(f"### {title}\n")[1].split("\n#")[0]
    lines = re.findall(r"^    (.*)$", section, re.MULTILINE)
    assert lines, title
    return "\n".join(lines)


def processes_of_session(session):
    """Return the ids of the running processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getsid(int(path.name)) == session:
                found.append(int(path.name))
    return found


class Program:
    """A process with a session, and a log file."""

    def __init__(self, command, directory, environment, log="log"):
        directory.mkdir(exist_ok=True)
        self.log = directory / log
        with self.log.open("w") as output:
            self.process = subprocess.Popen(
                command,
                cwd=directory,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self):
        return self.log.read_text()

    def finish(self, timeout=300):
        """Wait for the end, and return the exit code."""
        return self.process.wait(timeout)

    def kill(self):
        """Kill all processes of the session: the program, its JVM, Python workers."""
        while processes := processes_of_session(self.process.pid):
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.05)


class StandaloneCluster:
    """A master and two workers; each worker has one core, for one executor."""

    def __init__(self, base, environment=None):
        self.base = Path(base)
        self.conf = self.base / "conf"
        self.conf.mkdir()
        (self.conf / "spark-defaults.conf").write_text(DEFAULTS)
        self.environment = self._environment() | (environment or {})
        self.port, web_port = free_ports(2)
        self.url = f"spark://127.0.0.1:{self.port}"
        self.programs = []
        self.workers = {}
        self.master = self._start_daemon(
            "master",
            "master.Master",
            *("--host", "127.0.0.1", "--port", str(self.port)),
            *("--webui-port", str(web_port)),
        )
        for number in range(WORKERS):
            self.start_worker(number)

    def _environment(self):
        bin_directory = self.base / "bin"
        bin_directory.mkdir()
        (bin_directory / "python3").symlink_to(sys.executable)
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))
        }
        path = [str(bin_directory), str(SPARK_HOME / "bin"), os.environ["PATH"]]
        return inherited | {
            "PATH": os.pathsep.join(path),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_CONF_DIR": str(self.conf),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
            "TZ": "UTC",
        }

    def _start_daemon(self, name, kind, *arguments):
        spark_class = str(SPARK_HOME / "bin" / "spark-class")
        command = [spark_class, f"org.apache.spark.deploy.{kind}", *arguments]
        program = Program(command, self.base / name, self.environment)
        self.programs.append(program)
        return program

    def start_worker(self, number):
        """Start a worker, the first time or again after `kill_worker`."""
        name = f"worker-{number}"
        self.workers[number] = self._start_daemon(
            name,
            "worker.Worker",
            *("--host", "127.0.0.1", "--webui-port", "0"),
            *("--cores", "1", "--memory", "600m"),
            *("--work-dir", str(self.base / name / "work")),
            self.url,
        )

    def wait_until_ready(self):
        """Wait until all workers have registered at the master."""
        until_true(
            lambda: self.master.output().count("Registering worker") >= WORKERS,
            START_TIMEOUT,
            what="each worker is registered",
            pause=0.1,
        )

    def submit(self, commands, log):
        """Run commands of the page in a shell, in the cluster's directory."""
        program = Program(
            ["bash", "-euc", commands], self.base / "user", self.environment, log
        )
        self.programs.append(program)
        return program

    def executors(self):
        """Return the process ids of the executors, by the number of their worker."""
        found = {}
        for number, worker in self.workers.items():
            for process in processes_of_session(worker.process.pid):
                with suppress(OSError):
                    command = Path(f"/proc/{process}/cmdline").read_bytes()
                    if b"CoarseGrainedExecutorBackend" in command:
                        found[number] = process
        return found

    def kill_executor(self):
        """Kill one executor; Spark starts another one."""
        number, process = until_true(
            lambda: sorted(self.executors().items()), 60, what="an executor runs"
        )[0]
        os.kill(process, signal.SIGKILL)
        return number

    def kill_worker(self, number):
        """Kill a worker's process; its executor ends by itself."""
        worker = self.workers[number]
        worker.process.kill()
        worker.process.wait()

    def close(self):
        for program in self.programs:
            program.kill()
        # Executors have unpacked an environment each.
        for directory in self.base.glob("worker-*/work"):
            shutil.rmtree(directory)
