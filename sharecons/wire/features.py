"""ApiVersions (18), for the cluster's features in its tagged fields (KIP-584).

Decoded here, since `kio_schemas` drops tagged fields. Version 4 includes features that
can be off, as share.version on Kafka 4.1 (KIP-1022).
"""

from collections.abc import Callable, Mapping
from typing import Final

from sharecons.errors import ProtocolError
from sharecons.protocol.admin.models import FeatureRange, Features
from sharecons.protocol.admin.requests import DescribeFeatures, Reply
from sharecons.protocol.codes import Code
from sharecons.version import VERSION
from sharecons.wire.codec.api import Api, Frame
from sharecons.wire.codec.fields import NO_TAGS, FieldReader, text_field

__all__ = ["FEATURES"]

SOFTWARE: Final = "sharecons"

SUPPORTED: Final = 0
FINALIZED: Final = 2

_Field = Callable[[FieldReader], FeatureRange]


def _write(request: DescribeFeatures, version: int) -> bytes:
    return text_field(SOFTWARE) + text_field(VERSION) + NO_TAGS


def _read(frame: Frame, offset: int, version: int) -> Reply[Features]:
    try:
        return _features(FieldReader(frame, offset))
    except ValueError as error:
        raise ProtocolError(f"invalid ApiVersions response: {error}") from error


def _features(reader: FieldReader) -> Reply[Features]:
    code = reader.int16()
    if code != Code.NONE:
        return Reply(code, None, None)
    apis = {}
    for _ in range(reader.count(7)):
        key, lowest, highest = reader.int16(), reader.int16(), reader.int16()
        apis[key] = FeatureRange(lowest=lowest, highest=highest)
        reader.skip_tags()
    reader.int32()  # the throttle time
    supported: Mapping[str, FeatureRange] = {}
    finalized: Mapping[str, FeatureRange] = {}
    for _ in range(reader.varint()):
        tag, size = reader.varint(), reader.varint()
        end = reader.position + size
        if tag == SUPPORTED:
            supported = _ranges(reader, _supported_range)
        elif tag == FINALIZED:
            finalized = _ranges(reader, _finalized_range)
        reader.position = end
    return Reply(
        code, None, Features(finalized=finalized, supported=supported, apis=apis)
    )


def _ranges(reader: FieldReader, field: _Field) -> Mapping[str, FeatureRange]:
    found = {}
    for _ in range(reader.count(6)):
        name = reader.text()
        if name is None:
            raise ValueError("the name of a feature is null")
        found[name] = field(reader)
        reader.skip_tags()
    return found


def _supported_range(reader: FieldReader) -> FeatureRange:
    lowest, highest = reader.int16(), reader.int16()
    return FeatureRange(lowest=lowest, highest=highest)


def _finalized_range(reader: FieldReader) -> FeatureRange:
    # Finalized features have the highest level first.
    highest, lowest = reader.int16(), reader.int16()
    return FeatureRange(lowest=lowest, highest=highest)


FEATURES: Api[DescribeFeatures, Reply[Features]] = Api(
    key=18, name="ApiVersions", versions=range(3, 5), write=_write, read=_read
)
