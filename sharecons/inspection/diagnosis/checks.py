"""The result of one check of a cluster."""

import enum
from dataclasses import dataclass

__all__ = ["Check", "Verdict", "fail", "ok", "warn"]


class Verdict(enum.Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check: its subject, what was found, and advice."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Check:
    return Check(name=name, verdict=Verdict.OK, found=found)


def warn(name: str, found: str, advice: str) -> Check:
    return Check(name=name, verdict=Verdict.WARN, found=found, advice=advice)


def fail(name: str, found: str, advice: str) -> Check:
    return Check(name=name, verdict=Verdict.FAIL, found=found, advice=advice)
