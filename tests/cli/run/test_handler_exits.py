"""The exit code after SystemExit and its like in a handler."""

import pytest

from sharecons.cli.run.handler_exits import exit_code_after


def group(*errors):
    return BaseExceptionGroup("handlers", errors)


class Hostile(SystemExit):
    @property
    def code(self):
        raise RuntimeError("code")


def nested(error):
    for _ in range(3000):
        error = group(error)
    return error


@pytest.mark.parametrize(
    ("error", "alone", "supervised"),
    [
        (SystemExit(), 0, 1),
        (SystemExit(0), 0, 1),
        (SystemExit(256), 0, 1),
        (SystemExit(1), 1, 1),
        (SystemExit(2), 2, 1),
        (SystemExit(3), 3, 3),
        (SystemExit(-1), 255, 255),
        (SystemExit("no disk"), 1, 1),
        (GeneratorExit(), 1, 1),
        (group(GeneratorExit()), 1, 1),
        (group(group(SystemExit(4)), SystemExit(5)), 5, 5),
        (group(SystemExit(0), GeneratorExit()), 1, 1),
        (group(SystemExit(0), ValueError()), 1, 1),
        (group(KeyboardInterrupt()), 130, 130),
        (Hostile(3), 3, 3),
        (nested(SystemExit(3)), 3, 3),
    ],
)
def test_only_system_exit_outside_of_a_supervisor_can_be_success(
    error, alone, supervised
):
    assert alone == exit_code_after(error, is_supervised=False)
    assert supervised == exit_code_after(error, is_supervised=True)
