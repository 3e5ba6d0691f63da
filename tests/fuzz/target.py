"""A target: the cases of one reader, and the rules for what it does with them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hypothesis.strategies import SearchStrategy

__all__ = ["Case", "Target"]

Case = Any
"""None, bool, int, float, str, bytes, or a list or a dict of cases: see `corpus`."""

MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One reader of input.

    Attributes:
        name: the name on the command line, and of the directory in the corpus.
        cases: draws cases.
        check: passes a case to the reader. It catches the documented exceptions, and
            raises any other, or an AssertionError if a rule is broken.
        modules: the modules whose coverage is reported; a package stands for all of
            its modules.
        seconds: the limit of one execution, in seconds of CPU time.
        memory: the limit of one execution, in bytes.
        traces: whether the allocations of Python are traced, which takes time;
            otherwise only the peak of the resident memory is measured.
        examples: the number of cases that the quick test draws.
    """

    name: str
    cases: SearchStrategy[Case]
    check: Callable[[Case], None]
    modules: Sequence[str]
    seconds: float = 2.0
    memory: int = 32 * MEBIBYTE
    traces: bool = True
    examples: int = 200
