"""What follows an answer, found in the call of the event loop that brought it.

No coroutine is here: this is what each answer passes through, and it is compiled.
"""

from collections.abc import Callable
from typing import Any, Final, final

from sharecons.net.io.sasl import Login
from sharecons.wire.codec import frames
from sharecons.wire.codec.api import Api, Frame

__all__ = ["Asking", "Following", "Hear", "Later", "Numbers", "Onward", "nobody"]

HIGHEST: Final = 0x7FFFFFFF


# Their constructors are written out, as those of `protocol.values` are.


@final
class Onward:
    """What is exchanged next, the answer's reader says: see `Wire.exchange`.

    `begun`, if any, finds another `Onward` to be sent behind this one, when some of its
    answer is here, and much is to come.
    """

    __slots__ = ("begun", "data", "timeout")

    def __init__(
        self,
        data: bytes,
        timeout: float,
        begun: Callable[[], Any] | None = None,
    ) -> None:
        self.data = data
        self.timeout = timeout
        self.begun = begun


@final
class Later:
    """Who was woken by an answer is to run before `look` says what is next."""

    __slots__ = ("look",)

    def __init__(self, look: Callable[[], Any]) -> None:
        self.look = look


@final
class Following:
    """What is asked next, and how many seconds its answer may take.

    `begun`, if any, finds what is to be asked behind it, where a wire can do that: when
    some of its answer is here, and much is to come.
    """

    __slots__ = ("begun", "request", "timeout")

    def __init__(
        self,
        request: Any,
        timeout: float,
        begun: "Callable[[], Following | None] | None" = None,
    ) -> None:
        self.request = request
        self.timeout = timeout
        self.begun = begun


Hear = Callable[[Any], Following | Later | None]


def nobody(answer: object) -> None:
    """Hear nothing: who asks is given the answer."""


@final
class Numbers:
    """The requests of one connection, each with its number.

    Attributes:
        answers: how many came.
        under_way: how many are to come; they come in the order of the requests.
    """

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._last = 0
        self.answers = 0
        self.under_way = 0

    def request(self, key: int, version: int, body: bytes) -> bytes:
        """Give the next request's frame."""
        self._last = (self._last + 1) & HIGHEST
        self.under_way += 1
        return frames.request_frame(key, version, self._last, self._client_id, body)

    def body(self, frame: Frame, key: int) -> int:
        """Give where the body of the next answer begins.

        Raises:
            ProtocolError: it is no answer to the oldest request under way.
        """
        self.answers += 1
        self.under_way -= 1
        return frames.body_offset(frame, key, (self._last - self.under_way) & HIGHEST)


@final
class Asking:
    """A question of one kind, and those that follow its answer: see `Connection.ask`.

    Where the next question is of another kind, or comes after a login, it is given
    back to whoever asked first. That waits until nothing is under way, and so nothing
    is looked for behind a request while a login is due.
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
        self._begun: Callable[[], Following | None] | None = None

    def read(self, frame: Frame) -> Any:
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
        return self._found(look)

    def _has_begun(self) -> Any:
        return self._found(self._begun)

    def _found(self, look: Callable[[], Following | None] | None) -> Any:
        if look is None or (self._numbers.under_way and self._login_is_due):
            return None
        following = look()
        return None if following is None else self._onward(following)

    @property
    def _login_is_due(self) -> bool:
        return self._login is not None and self._login.due

    def _onward(self, following: Following) -> Any:
        if self._login_is_due or type(following.request) is not self._kind:
            return following
        body = self._write(following.request, self._version)
        data = self._numbers.request(self._key, self._version, body)
        begun = None
        if following.begun is not None:
            self._begun, begun = following.begun, self._has_begun
        return Onward(data, following.timeout, begun)
