"""The tables of tests/limits."""

from pathlib import Path

from tests.limits.figures import Figure
from tests.limits.report import Results, faults, read, save, table


def results(*values: float, is_broker: bool = False) -> Results:
    """Return the results of a command at 100, 300 and 1,000 partitions."""
    sizes = (100, 300, 1000)[: len(values)]
    return {
        "partitions": {
            size: [Figure("describe", "requests", value, is_broker)]
            for size, value in zip(sizes, values, strict=True)
        }
    }


def lines(found: Results) -> list[str]:
    return list(table("partitions", found["partitions"]))


def test_table_has_the_values_and_the_exponent_of_each_figure() -> None:
    expected = [
        "| partitions | unit | 100 | 300 | 1,000 | exponent | |",
        "|---|---|---:|---:|---:|---:|---|",
        "| describe | requests | 10 | 30 | 100 | 1.00 |  |",
    ]
    assert expected == lines(results(10.0, 30.0, 100.0))


def test_figure_that_grows_faster_than_its_size_is_a_fault() -> None:
    found = results(1.0, 9.0, 100.0)

    assert ["partitions: describe (requests) grows as 2.00"] == list(faults(found))
    assert lines(found)[-1].endswith("| 2.00 | faster |")


def test_figure_of_the_broker_is_no_fault_of_the_client() -> None:
    found = results(1.0, 9.0, 100.0, is_broker=True)

    assert [] == list(faults(found))
    assert lines(found)[-1].endswith("| 2.00 | faster, the broker |")


def test_figure_that_was_measured_at_one_size_has_no_exponent() -> None:
    assert "| describe | requests | 10 |  |  |" == lines(results(10.0))[-1]


def test_saved_results_are_read_unchanged(tmp_path: Path) -> None:
    found = results(1.0, 2.0, 3.0)
    save(found, tmp_path / "results.json")

    assert found == read(tmp_path / "results.json")
