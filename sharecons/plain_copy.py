"""Copies of exceptions whose texts are plain, for log lines, spans and headers.

Handlers of the application's logging format them without calling code of the
application, however often they do. See `plain_texts`.
"""

from functools import lru_cache, partial
from typing import Any, Final

from sharecons.guard import (
    cause_of,
    chain_of,
    context_of,
    exceptions_of,
    module_name,
    qualified_type_name,
    raw_traceback,
    type_name,
)
from sharecons.plain_texts import (
    HEAD_START,
    MAX_CHAIN,
    Texts,
    has_kept_texts,
    is_plain_error,
    keep_texts,
    make_quickly,
    make_texts,
    no_texts,
    texts_of,
)

__all__ = ["plain_copy"]

_SUPPRESS: Final[Any] = BaseException.__dict__["__suppress_context__"]

Copies = dict[int, BaseException]


def plain_copy(error: BaseException) -> BaseException:
    """Return an exception with plain texts, as have its causes and contexts.

    It is the exception itself if its texts are plain. Otherwise it is a copy that has
    the names of its class, its traceback, and the texts that are kept or made quickly.
    """
    chain = chain_of(error, MAX_CHAIN)
    others = [each for each in chain if not is_plain_error(each)]
    if not others or len(chain) > MAX_CHAIN:
        return error
    texts = _quick_texts([each for each in others if not has_kept_texts(each)])
    copies: Copies = {}
    for each in chain:
        _add_copy(each, texts, copies)
    for each in chain:
        _connect(each, copies)
    return copies[id(error)]


def _quick_texts(errors: list[BaseException]) -> dict[int, Texts]:
    if not errors:
        return {}
    made = make_quickly([partial(make_texts, each) for each in errors])
    missing = [no_texts(each, HEAD_START) for each in errors[len(made) :]]
    return {
        id(each): texts for each, texts in zip(errors, [*made, *missing], strict=True)
    }


def _add_copy(
    error: BaseException, texts: dict[int, Texts], copies: Copies
) -> BaseException:
    """Copy an exception without its cause and context; of a group, with its own."""
    if id(error) in copies:
        return copies[id(error)]
    text, notes = texts.get(id(error)) or texts_of(error)
    exceptions = [_add_copy(each, texts, copies) for each in exceptions_of(error)]
    kind = _class_of(
        type_name(error),
        qualified_type_name(error),
        module_name(error),
        BaseExceptionGroup if exceptions else Exception,
    )
    copied: BaseException = kind(text, exceptions) if exceptions else kind(text)
    if notes:
        copied.__notes__ = [*notes]
    keep_texts(copied, Texts(text, notes))
    copies[id(error)] = copied
    return copied


def _connect(error: BaseException, copies: Copies) -> None:
    copied = copies[id(error)]
    cause, context = cause_of(error), context_of(error)
    copied.__cause__ = None if cause is None else copies[id(cause)]
    copied.__context__ = None if context is None else copies[id(context)]
    copied.__suppress_context__ = _SUPPRESS.__get__(error)
    copied.__traceback__ = raw_traceback(error)


@lru_cache(maxsize=200)
def _class_of(
    name: str, qualified_name: str, module: str | None, base: type[BaseException]
) -> Any:
    def text(self: BaseException) -> str:
        return str(self.args[0])

    attributes = {"__qualname__": qualified_name, "__module__": module, "__str__": text}
    return type(name, (base,), attributes)
