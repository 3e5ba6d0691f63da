"""Token sources that a properties file can name."""

import json
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, url2pathname, urlopen

from sharecons.daemon_threads import call_in_daemon_thread
from sharecons.protocol.sasl.credentials import TokenSource

__all__ = ["from_endpoint", "from_file", "unsecured"]

TIMEOUT: Final = 10.0
LIFETIME: Final = 3600


def unsecured(claims: Mapping[str, str], lifetime: float = LIFETIME) -> TokenSource:
    """Return a source of unsigned tokens (RFC 7515, A.5), for tests.

    Args:
        lifetime: seconds until a token expires.
    """

    def token() -> str:
        now = time.time()
        times = {"iat": round(now, 3), "exp": round(now + lifetime, 3)}
        return f"{_encode_part({'alg': 'none'})}.{_encode_part({**claims, **times})}."

    return token


def from_file(url: str) -> TokenSource:
    """Return a source that reads the token from a file each time."""
    path = url2pathname(urlsplit(url).path)

    def token() -> str:
        return Path(path).read_text().strip()

    return token


def from_endpoint(
    url: str, client_id: str, secret: str, scope: str | None = None
) -> TokenSource:
    """Return a source that requests tokens from an OAuth server (RFC 6749, 4.4)."""
    form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    login = b64encode(f"{client_id}:{secret}".encode()).decode()
    request = Request(
        url,
        data=urlencode(form).encode(),
        headers={"Authorization": f"Basic {login}", "Accept": "application/json"},
    )

    async def token() -> str:
        return await call_in_daemon_thread(partial(_fetch_token, request))

    return token


def _fetch_token(request: Request) -> str:
    where = request.full_url
    try:
        with urlopen(request, timeout=TIMEOUT) as response:
            token = json.load(response)["access_token"]
            if not isinstance(token, str):
                raise TypeError
    except HTTPError as error:
        error.close()
        raise OSError(f"{where} returned {error.code} {error.reason}") from error
    except URLError as error:
        raise OSError(f"{where}: {error.reason}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise OSError(f"{where} returned no access_token") from error
    return token


def _encode_part(content: Mapping[str, str | float]) -> str:
    data = json.dumps(content, separators=(",", ":")).encode()
    return urlsafe_b64encode(data).rstrip(b"=").decode()
