"""What follows an answer, found in the call of the event loop that brought it.

No coroutine is here: this is what each answer passes through, and it is compiled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from sharecons.net.login import Login
from sharecons.wire import frames
from sharecons.wire.api import Api

__all__ = ["Asking", "Following", "Hear", "Later", "Numbers", "Onward", "nobody"]


@final
@dataclass(frozen=True, slots=True)
class Onward:
    """What is exchanged next, the answer's reader says: see `Wire.exchange`."""

    data: bytes
    timeout: float


@final
@dataclass(frozen=True, slots=True)
class Later:
    """Who was woken by an answer is to run before `look` says what is next."""

    look: Callable[[], Any]


class Following(NamedTuple):
    """What is asked next, and how many seconds its answer may take."""

    request: Any
    timeout: float


Hear = Callable[[Any], Following | Later | None]


def nobody(answer: object) -> None:
    """Hear nothing: who asks is given the answer."""


@final
class Numbers:
    """The requests of one connection, each with its number.

    Attributes:
        answers: how many came.
    """

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._last = 0
        self.answers = 0

    def request(self, key: int, version: int, body: bytes) -> bytes:
        """Give the next request's frame."""
        self._last = (self._last + 1) & 0x7FFFFFFF
        return frames.request_frame(key, version, self._last, self._client_id, body)

    def body(self, frame: memoryview, key: int) -> int:
        """Give where the answer's body begins.

        There is no other request: the last number is that of this answer.

        Raises:
            ProtocolError: it is no answer to the last request.
        """
        self.answers += 1
        return frames.body_offset(frame, key, self._last)


@final
class Asking:
    """A question of one kind, and those that follow its answer: see `Connection.ask`.

    Where the next question is of another kind, or comes after a login, it is given
    back to whoever asked first.
    """

    def __init__(
        self,
        kind: type,
        api: Api[Any, Any],
        version: int,
        numbers: Numbers,
        login: Login | None,
        hear: Hear,
    ) -> None:
        self._kind = kind
        self._write = api.write
        self._read = api.read
        self._key = api.key
        self._version = version
        self._numbers = numbers
        self._login = login
        self._hear = hear
        self._look: Callable[[], Following | None] | None = None

    def read(self, frame: memoryview) -> Any:
        """Read an answer, and give what the wire goes on with."""
        offset = self._numbers.body(frame, self._key)
        answer = self._read(frame, offset, self._version)
        following = self._hear(answer)
        if following is None:
            return answer
        if isinstance(following, Later):
            self._look = following.look
            return Later(self._looked)
        return self._onward(following)

    def _looked(self) -> Any:
        look, self._look = self._look, None
        following = look() if look is not None else None
        return None if following is None else self._onward(following)

    def _onward(self, following: Following) -> Any:
        login_due = self._login is not None and self._login.due
        if login_due or type(following.request) is not self._kind:
            return following
        body = self._write(following.request, self._version)
        data = self._numbers.request(self._key, self._version, body)
        return Onward(data, following.timeout)
