"""Kafka's error codes and their names."""

import pytest

from sharecons.protocol.codes import Code, code_name


@pytest.mark.parametrize("code", Code)
def test_name_of_a_known_code_is_kafkas(code: Code):
    assert code.name == code_name(code.value)


@pytest.mark.parametrize("code", [-2, 4, 9_999])
def test_name_of_an_unknown_code_is_its_number(code: int):
    assert f"error code {code}" == code_name(code)


def test_each_code_number_has_one_name():
    assert len(Code.__members__) == len({code.value for code in Code})
