"""What follows an answer, found in the call of the event loop that brought it.

No coroutine is here: this is what each answer passes through, and it is compiled.
"""

from collections.abc import Callable
from typing import Any, Final, final

from sharecons.net.io.sasl import SaslSession
from sharecons.wire.codec import frames
from sharecons.wire.codec.api import Api, Frame

__all__ = [
    "CorrelationIds",
    "Deferred",
    "Hear",
    "NextFrame",
    "NextRequest",
    "RequestExchange",
    "ignore",
]

HIGHEST: Final = 0x7FFFFFFF


# Their constructors are written out, as those of `protocol.values` are.


@final
class NextFrame:
    """What is exchanged next, the answer's reader says: see `Wire.exchange`.

    `begun`, if any, finds another `Onward` to be sent behind this one, when some of its
    answer is here, and much is to come.
    """

    __slots__ = ("data", "on_partial", "timeout")

    def __init__(
        self,
        data: bytes,
        timeout: float,
        begun: Callable[[], Any] | None = None,
    ) -> None:
        self.data = data
        self.timeout = timeout
        self.on_partial = begun


@final
class Deferred:
    """Who was woken by an answer is to run before `look` says what is next."""

    __slots__ = ("find",)

    def __init__(self, look: Callable[[], Any]) -> None:
        self.find = look


@final
class NextRequest:
    """What is asked next, and how many seconds its answer may take.

    `begun`, if any, finds what is to be asked behind it, where a wire can do that: when
    some of its answer is here, and much is to come.
    """

    __slots__ = ("on_partial", "request", "timeout")

    def __init__(
        self,
        request: Any,
        timeout: float,
        begun: "Callable[[], NextRequest | None] | None" = None,
    ) -> None:
        self.request = request
        self.timeout = timeout
        self.on_partial = begun


Hear = Callable[[Any], NextRequest | Deferred | None]


def ignore(answer: object) -> None:
    """Hear nothing: who asks is given the answer."""


@final
class CorrelationIds:
    """The requests of one connection, each with its number.

    Attributes:
        answers: how many came.
        under_way: how many are to come; they come in the order of the requests.
    """

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._last = 0
        self.answers = 0
        self.in_flight = 0

    def request(self, key: int, version: int, body: bytes) -> bytes:
        """Give the next request's frame."""
        self._last = (self._last + 1) & HIGHEST
        self.in_flight += 1
        return frames.request_frame(key, version, self._last, self._client_id, body)

    def body(self, frame: Frame, key: int) -> int:
        """Give where the body of the next answer begins.

        Raises:
            ProtocolError: it is no answer to the oldest request under way.
        """
        self.answers += 1
        self.in_flight -= 1
        return frames.body_offset(frame, key, (self._last - self.in_flight) & HIGHEST)


@final
class RequestExchange:
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
        numbers: CorrelationIds,
        login: SaslSession | None,
        hear: Hear,
    ) -> None:
        self._kind = kind
        self._write = api.write
        self._read = api.read
        self._key = api.key
        self._version = version
        self._correlation_ids = numbers
        self._login = login
        self._on_response = hear
        self._find_next: Callable[[], NextRequest | None] | None = None
        self._partial_handler: Callable[[], NextRequest | None] | None = None

    def read(self, frame: Frame) -> Any:
        """Read an answer, and give what the wire goes on with."""
        offset = self._correlation_ids.body(frame, self._key)
        answer = self._read(frame, offset, self._version)
        following = self._on_response(answer)
        if following is None:
            return answer
        if isinstance(following, Deferred):
            self._find_next = following.find
            return Deferred(self._found_later)
        return self._next_frame(following)

    def _found_later(self) -> Any:
        look, self._find_next = self._find_next, None
        return self._found(look)

    def _on_partial(self) -> Any:
        return self._found(self._partial_handler)

    def _found(self, look: Callable[[], NextRequest | None] | None) -> Any:
        if look is None or (self._correlation_ids.in_flight and self._login_is_due):
            return None
        following = look()
        return None if following is None else self._next_frame(following)

    @property
    def _login_is_due(self) -> bool:
        return self._login is not None and self._login.is_due

    def _next_frame(self, following: NextRequest) -> Any:
        if self._login_is_due or type(following.request) is not self._kind:
            return following
        body = self._write(following.request, self._version)
        data = self._correlation_ids.request(self._key, self._version, body)
        begun = None
        if following.on_partial is not None:
            self._partial_handler, begun = following.on_partial, self._on_partial
        return NextFrame(data, following.timeout, begun)
