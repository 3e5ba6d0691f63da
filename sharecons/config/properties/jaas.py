"""`sasl.jaas.config`: a login module, a flag, and options, ended by a semicolon."""

import re
from collections.abc import Mapping
from typing import Final

from sharecons.config.properties.errors import BrokenError

__all__ = ["NAME", "options_of"]

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
"""Its text, and whether it is a mark: `=` or `;`."""


def options_of(text: str) -> Mapping[str, str]:
    """The options of the one login module.

    Raises:
        BrokenError: it is not spelt as it is to be.
    """
    tokens = _tokens(text)
    if not tokens or tokens[-1] != (";", True):
        raise BrokenError(NAME, "it must end with a semicolon")
    if len(tokens) < 3 or tokens[1][0].lower() not in FLAGS:
        raise BrokenError(
            NAME, "it begins with a login module's class, and then `required`"
        )
    options: dict[str, str] = {}
    rest = tokens[2:-1]
    for at in range(0, len(rest), 3):
        name, value = _option(rest[at : at + 3])
        options[name] = value
    return options


def _option(tokens: list[Token]) -> tuple[str, str]:
    if (";", True) in tokens:
        raise BrokenError(NAME, "there must be one login module, and no more")
    if [mark for _, mark in tokens] != [False, True, False]:
        # Not what stands there: it may be the password.
        raise BrokenError(NAME, 'options are written as in username="alice"')
    return tokens[0][0], tokens[2][0]


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise BrokenError(NAME, "a quotation mark opens and none closes it")
        tokens.append(_token(match))
        at = match.end()
    return tokens


def _token(match: re.Match[str]) -> Token:
    if match["mark"]:
        return match["mark"], True
    if match["word"]:
        return match["word"], False
    quoted = match["double"] if match["double"] is not None else match["single"]
    return _ESCAPE.sub(_unescaped, quoted), False


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped.isdecimal():
        return chr(int(escaped, 8) & 0xFF)
    return _ESCAPES.get(escaped, escaped)
