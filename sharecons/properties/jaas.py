"""A parser of `sasl.jaas.config`: a login module, a flag, options and a semicolon."""

import re
from collections.abc import Mapping
from typing import Final

from sharecons.properties.errors import PropertyError

__all__ = ["NAME", "parse_options"]

NAME: Final = "sasl.jaas.config"

_TEXT: Final = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[^\s"'=;]+)"""
_LOGIN: Final = re.compile(
    rf"\s*{_TEXT}\s+(?i:required|requisite|sufficient|optional)(?=[\s;])((?s:.*));\s*"
)
_OPTION: Final = re.compile(rf"\s*({_TEXT})\s*=\s*({_TEXT})\s*")
_ESCAPE: Final = re.compile(r"\\(?:(?P<octal>[0-7]{1,3})|.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b"}


def parse_options(text: str) -> Mapping[str, str]:
    """Return the options of the login module.

    Raises:
        PropertyError: the syntax is invalid.
    """
    if not text.rstrip().endswith(";"):
        raise PropertyError(NAME, "must end with a semicolon")
    login = _LOGIN.fullmatch(text)
    if login is None:
        raise PropertyError(
            NAME, "must begin with the class of a login module, then `required`"
        )
    options: dict[str, str] = {}
    rest = login[1]
    while rest.strip():
        option = _OPTION.match(rest)
        if option is None:
            raise PropertyError(NAME, _fault(rest))
        options[_unquote(option[1])] = _unquote(option[2])
        rest = rest[option.end() :]
    return options


def _fault(rest: str) -> str:
    # The message omits the text, which can be the password.
    if rest.lstrip().startswith(";"):
        return "must contain only one login module"
    if re.search("[\"']", re.sub(_TEXT, "", rest)):
        return "a quotation mark is not closed"
    return 'options must be written as in username="alice"'


def _unquote(text: str) -> str:
    return _ESCAPE.sub(_unescape, text[1:-1]) if text[0] in "\"'" else text


def _unescape(match: re.Match[str]) -> str:
    if match["octal"]:
        return chr(int(match["octal"], 8) & 0xFF)
    return _ESCAPES.get(match[0][1:], match[0][1:])
