"""SIGINT while the pipeline starts: one line, and exit code 0."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from tests.spark.spark_session import environment

STOPPED = "pipeline: stopped by a signal before anything was read\n"

INTERRUPTED_IMPORT = """
import os, runpy, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "pyspark":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
runpy.run_module("sharecons.spark.pipeline", run_name="__main__", alter_sys=True)
"""


def run(program, base):
    needed = ["--topic", "orders", "--group", "lake", "--schema", "id INT"]
    return subprocess.run(
        [sys.executable, *program, *needed, "--into", str(base / "lake")],
        env=os.environ | environment(),
        cwd=base,
        capture_output=True,
        text=True,
        timeout=200,
        start_new_session=True,
    )


@pytest.mark.slow("imports Spark")
def test_sigint_during_imports_ends_with_one_line(tmp_path):
    done = run(["-c", INTERRUPTED_IMPORT], tmp_path)

    assert (done.returncode, done.stderr) == (0, STOPPED)


@pytest.mark.slow("starts Spark", seconds=120)
@pytest.mark.timeout(240)
def test_sigint_when_spark_has_just_started_ends_with_one_line(tmp_path):
    program = ["-m", "tests.spark.pipeline_program", "Spark started:1"]

    done = run(program, tmp_path)

    assert done.returncode == 0, done.stderr
    own = [line for line in done.stderr.splitlines(True) if "pipeline" in line]
    assert own == [STOPPED]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "lake").exists()
