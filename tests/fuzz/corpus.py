"""The saved cases: JSON files, in which {"hex": "00ff"} stands for bytes."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from tests.fuzz.target import Case

__all__ = ["CORPUS", "cases_of", "decode_case", "encode_case", "read_case", "save_case"]

CORPUS: Final = Path(__file__).parent / "corpus"

HEX: Final = "hex"
PAIRS: Final = "pairs"
"""Stands for a dict with the key "hex" or "pairs"."""


def encode_case(case: Case) -> str:
    return json.dumps(_to_json(case), indent=1) + "\n"


def decode_case(text: str) -> Case:
    return _from_json(json.loads(text))


def save_case(case: Case, target: str, corpus: Path = CORPUS) -> Path:
    """Save a case, and return its file."""
    text = encode_case(case)
    path = corpus / target / f"{sha256(text.encode()).hexdigest()[:12]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read_case(path: Path) -> Case:
    return decode_case(path.read_text())


def cases_of(target: str, corpus: Path = CORPUS) -> Iterator[Path]:
    """Return the files of a target's cases."""
    return iter(sorted((corpus / target).glob("*.json")))


def _to_json(case: Case) -> Any:
    match case:
        case bytes():
            return {HEX: case.hex()}
        case list() | tuple():
            return [_to_json(each) for each in case]
        case dict() if HEX in case or PAIRS in case:
            return {PAIRS: [[name, _to_json(value)] for name, value in case.items()]}
        case dict():
            return {name: _to_json(value) for name, value in case.items()}
    return case


def _from_json(value: Any) -> Case:
    match value:
        case list():
            return [_from_json(each) for each in value]
        case {"hex": str(digits)}:
            return bytes.fromhex(digits)
        case {"pairs": list(pairs)}:
            return {name: _from_json(each) for name, each in pairs}
        case dict():
            return {name: _from_json(each) for name, each in value.items()}
    return value
