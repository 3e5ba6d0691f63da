"""Jars from Maven Central in Python: jgo resolves them, this module downloads them.

jgo opens a connection for each of some 600 small files, which took 84 s instead of 2 s
with persistent connections; it only warns of wrong checksums; and it trusts only
certifi's authorities. So it does not download.
"""

import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from jgo.maven import Artifact, MavenContext, PythonResolver
from requests import Session
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from sharecons.testing.kafka.errors import LaunchError

__all__ = ["copy_jars"]

READ_TIMEOUT: Final = 60.0  # seconds without a byte from the server
CONNECTIONS: Final = 8
RETRY: Final = Retry(total=4, backoff_factor=0.5, status_forcelist=(429, 502, 503, 504))


def copy_jars(wanted: Iterable[str], directory: Path) -> None:
    """Download the jars of these coordinates and their dependencies to a directory."""
    with TemporaryDirectory(prefix="jgo-", dir=directory.parent) as scratch:
        central = _Central()
        context = MavenContext(resolver=central, repo_cache=Path(scratch))
        roots = [context.create_dependency(coordinate) for coordinate in wanted]
        found, needed = central.resolve(roots)
        artifacts = [dependency.artifact for dependency in (*found, *needed)]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for jar in pool.map(Artifact.resolve, artifacts):
                jar.rename(directory / jar.name)


class _SystemTrust(HTTPAdapter):
    """Trusts the authorities of Python's ssl module in addition to certifi's.

    A company's authority is in the system's store or in SSL_CERT_FILE, which requests
    ignores.
    """

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        context = ssl.create_default_context()
        super().init_poolmanager(*args, ssl_context=context, **kwargs)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        context = ssl.create_default_context()
        return super().proxy_manager_for(*args, ssl_context=context, **kwargs)


class _Central(PythonResolver):
    def __init__(self) -> None:
        super().__init__()
        self._session = Session()
        adapter = _SystemTrust(pool_maxsize=CONNECTIONS, max_retries=RETRY)
        self._session.mount("https://", adapter)

    def download(self, artifact: Artifact) -> Path:
        (repository,) = artifact.context.remote_repos.values()
        folder = artifact.component.path_prefix.as_posix()
        url = f"{repository}/{folder}/{artifact.filename}"
        content = self._get(url)
        if sha1(content).hexdigest() != self._get(f"{url}.sha1").split()[0].decode():
            raise LaunchError(f"{url} does not match its checksum")
        return _store(content, artifact)

    def _get(self, url: str) -> bytes:
        response = self._session.get(url, timeout=READ_TIMEOUT)
        response.raise_for_status()
        return response.content


def _store(content: bytes, artifact: Artifact) -> Path:
    path = artifact.cached_path
    assert path is not None  # the context has a cache
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
