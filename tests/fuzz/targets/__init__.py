"""The targets, by name."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from tests.fuzz.target import Target

__all__ = ["TARGETS"]

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "batches": (),
    "wire": (),
    "authentication": (),
    "clients": (),
    "requests": (),
    "texts": (),
    "headers": (),
    "dashboard": ("starlette", "jinja2"),
    "spark": ("pyspark", "fastavro"),
}
"""The modules of targets, and the packages that they need."""


def _targets() -> Iterator[tuple[str, Target]]:
    for name, needed in MODULES.items():
        if all(find_spec(each) for each in needed):
            for target in import_module(f"{__name__}.{name}").TARGETS:
                yield target.name, target


TARGETS: Final[Mapping[str, Target]] = dict(_targets())
