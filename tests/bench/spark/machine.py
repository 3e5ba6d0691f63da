"""On what it was measured: of the machine's lines those that matter, and Spark's."""

from importlib.metadata import version
from typing import Final

from tests.bench import machine
from tests.bench.spark.jars import ARTIFACTS

__all__ = ["described"]

# Of what the other benchmark says of its machine: those that take part here.
OF_BOTH: Final = (
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


def described(kafka: str) -> dict[str, str]:
    """Give the lines of a table."""
    about = machine.described(kafka)
    named = (each.split(":")[1:] for each in ARTIFACTS)
    return {
        **{name: about[name] for name in OF_BOTH},
        **{name: version(name) for name in ("pyspark", "pyarrow")},
        **dict(named),
    }
