"""Description of the machine and of the software versions used with Spark."""

from importlib.metadata import version
from typing import Final

from tests.bench import machine
from tests.bench.spark.jars import ARTIFACTS

__all__ = ["describe_machine"]

# Rows of the other benchmark's description that apply here, too.
SHARED_LINES: Final = (
    "processor",
    "memory",
    "system",
    "commit",
    "Kafka",
    "Java",
    "Python",
    "sharecons",
    "kio",
    "cramjam",
    "crc32c",
)


def describe_machine(kafka: str) -> dict[str, str]:
    """Return the rows of the table, name to value."""
    about = machine.describe_machine(kafka)
    named = (each.split(":")[1:] for each in ARTIFACTS)
    return {
        **{name: about[name] for name in SHARED_LINES},
        **{name: version(name) for name in ("pyspark", "pyarrow")},
        **dict(named),
    }
