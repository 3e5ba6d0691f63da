"""Each case that once escaped."""

import pytest

from tests.fuzz.corpus import CORPUS, cases_of, read_case
from tests.fuzz.search import execute
from tests.fuzz.targets import TARGETS

MAX_SIZE = 300_000


@pytest.mark.slow("starts brokers and Spark's types")
@pytest.mark.parametrize(
    ("name", "path"),
    [
        pytest.param(name, path, id=f"{name}-{path.stem}")
        for name in TARGETS
        for path in cases_of(name)
    ],
)
def test_saved_case_is_no_escape(name, path):
    escape = execute(TARGETS[name], read_case(path))

    assert escape is None, escape.text


def test_corpus_is_small():
    sizes = [path.stat().st_size for path in CORPUS.rglob("*.json")]

    assert sum(sizes) <= MAX_SIZE
