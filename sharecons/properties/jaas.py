"""A parser of `sasl.jaas.config`: a login module, a flag, options and a semicolon."""

import re
from collections.abc import Mapping
from typing import Final

from sharecons.properties.errors import PropertyError

__all__ = ["NAME", "parse_options"]

NAME: Final = "sasl.jaas.config"

_TOKEN: Final = re.compile(
    r"""\s*(?:
      "(?P<double>(?:[^"\\\n]|\\.)*)"
    | '(?P<single>(?:[^'\\\n]|\\.)*)'
    | (?P<mark>[=;])
    | (?P<word>[^\s"'=;]+)
    )\s*""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\([0-7]{1,3}|.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b"}
FLAGS: Final = ("required", "requisite", "sufficient", "optional")

Token = tuple[str, bool]
"""The text of a token, and whether it is a mark (`=` or `;`)."""


def parse_options(text: str) -> Mapping[str, str]:
    """Return the options of the login module.

    Raises:
        PropertyError: the syntax is invalid.
    """
    tokens = _tokenize(text)
    if not tokens or tokens[-1] != (";", True):
        raise PropertyError(NAME, "must end with a semicolon")
    if len(tokens) < 3 or tokens[1][0].lower() not in FLAGS:
        raise PropertyError(
            NAME, "must begin with the class of a login module, then `required`"
        )
    options: dict[str, str] = {}
    rest = tokens[2:-1]
    for at in range(0, len(rest), 3):
        name, value = _parse_option(rest[at : at + 3])
        options[name] = value
    return options


def _parse_option(tokens: list[Token]) -> tuple[str, str]:
    if (";", True) in tokens:
        raise PropertyError(NAME, "must contain only one login module")
    if [mark for _, mark in tokens] != [False, True, False]:
        # The message omits the text, which can be the password.
        raise PropertyError(NAME, 'options must be written as in username="alice"')
    return tokens[0][0], tokens[2][0]


def _tokenize(text: str) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise PropertyError(NAME, "a quotation mark is not closed")
        tokens.append(_token(match))
        at = match.end()
    return tokens


def _token(match: re.Match[str]) -> Token:
    if match["mark"]:
        return match["mark"], True
    if match["word"]:
        return match["word"], False
    quoted = match["double"] if match["double"] is not None else match["single"]
    return _ESCAPE.sub(_unescape, quoted), False


def _unescape(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped.isdecimal():
        return chr(int(escaped, 8) & 0xFF)
    return _ESCAPES.get(escaped, escaped)
