import pytest

from sharecons.protocol.codes import Code, code_name


@pytest.mark.parametrize("code", Code)
def test_a_known_code_has_kafkas_name(code: Code):
    assert code.name == code_name(code.value)


@pytest.mark.parametrize("code", [-2, 4, 9_999])
def test_an_unknown_code_is_named_by_its_number(code: int):
    assert f"error code {code}" == code_name(code)


def test_no_number_has_two_names():
    assert len(Code.__members__) == len({code.value for code in Code})
