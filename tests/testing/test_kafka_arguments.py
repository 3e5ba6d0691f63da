"""The arguments of `python -m sharecons.testing.kafka`, before a Kafka starts."""

import pytest

from sharecons.testing.kafka import __main__ as program
from sharecons.testing.kafka.errors import LaunchError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "orders:x"], "argument --topic: 'x' is not a positive number"),
        (["--topic", "orders:0"], "argument --topic: '0' is not a positive number"),
        (["--brokers", "0"], "argument --brokers: '0' is not a positive number"),
        (["--records", "5"], "--records needs --topic"),
    ],
)
def test_invalid_argument_is_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        program.main(arguments)
    assert message in capsys.readouterr().err


def test_program_that_does_not_exist_is_named() -> None:
    with pytest.raises(LaunchError, match="cannot run no-such-program: No such file"):
        program._run_command(["no-such-program"], "localhost:9092")
