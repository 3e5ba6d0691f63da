"""Delta's jars for tests, if there are any for the installed Spark."""

from typing import Final

import pyspark
import pytest

from tests.spark.maven import download_jars

__all__ = ["HAS_DELTA", "delta_jars", "needs_delta"]

DELTA: Final = "4.4.0"
SPARK: Final = "4.2"
"""The last version of Spark that Delta was published for."""

ARTIFACTS: Final = (
    f"io.delta:delta-spark_{SPARK}_2.13:{DELTA}",
    f"io.delta:delta-storage:{DELTA}",
    f"io.delta:delta-kernel-api:{DELTA}",
    f"io.delta:delta-kernel-defaults:{DELTA}",
)

HAS_DELTA: Final = pyspark.__version__.startswith(f"{SPARK}.")

needs_delta = pytest.mark.skipif(
    not HAS_DELTA, reason=f"Delta {DELTA} is for Spark {SPARK} (tox -e delta)"
)


def delta_jars() -> str:
    """Return the paths of the jars, separated by commas; the first call downloads them.

    Raises:
        LaunchError: neither Maven nor jgo could download them.
    """
    return ",".join(map(str, download_jars("delta", ARTIFACTS)))
