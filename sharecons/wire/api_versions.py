"""ApiVersions (18): the APIs and versions a broker supports; the first request.

The request has version 3. A broker that does not support it responds in version 0 with
UNSUPPORTED_VERSION (KIP-511). These brokers have no share groups, so their list is only
used for the error message. This API's responses always have header version 0.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sharecons.errors import ProtocolError
from sharecons.protocol.codes import Code, code_name
from sharecons.wire.codec.api import (
    API_VERSIONS_KEY,
    Frame,
    VersionRange,
    read_entity,
    write_entity,
)

__all__ = ["KEY", "VERSION", "read_versions", "write_versions_request"]

v0: Any = import_module("kio.schema.api_versions.v0")
v3: Any = import_module("kio.schema.api_versions.v3")

KEY = API_VERSIONS_KEY
VERSION = 3


def write_versions_request(software: str, version: str) -> bytes:
    return write_entity(
        v3.ApiVersionsRequest(
            client_software_name=software, client_software_version=version
        )
    )


def read_versions(frame: Frame, offset: int) -> Mapping[int, VersionRange]:
    """Return the broker's version ranges by API key.

    Raises:
        ProtocolError: the response is invalid or contains an error.
    """
    code = int.from_bytes(frame[offset : offset + 2], "big", signed=True)
    if code not in (Code.NONE, Code.UNSUPPORTED_VERSION):
        raise ProtocolError(f"ApiVersions failed: {code_name(code)}")
    version = v3 if code == Code.NONE else v0
    response = read_entity(version.ApiVersionsResponse, frame, offset)
    return {
        api.api_key: VersionRange(api.min_version, api.max_version)
        for api in response.api_keys
    }
