"""The options of a producer."""

from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from sharecons.config.options import option
from sharecons.config.validation import HOUR, check_choice, check_count, check_number
from sharecons.net.settings import ClientSettings, ConnectionOptions
from sharecons.records.compression import Codec

__all__ = ["ProducerOptions", "ProducerSettings"]

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]

MAX_BUFFERED: Final = 1 << 30
"""The maximum of `max_buffered_bytes`; a request has a length of 31 bits."""


class ProducerOptions(ConnectionOptions, total=False):
    """All keyword arguments of `Producer`."""

    compression: Compression
    delivery_timeout: float
    max_buffered_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings(ClientSettings):
    """The settings of a producer, without the connection to its cluster."""

    compression: Compression = option(
        "none",
        partial(check_choice, choices=tuple(codec.name.lower() for codec in Codec)),
        'of batches: "none", "gzip", "snappy", "lz4" or "zstd"',
    )
    delivery_timeout: float = option(
        30.0,
        partial(check_number, minimum=0.001, maximum=HOUR),
        "seconds for a record to be confirmed, with all retries, after it was added. A "
        "request in flight then ends within `request_timeout`",
    )
    max_buffered_bytes: int = option(
        32 << 20,
        partial(check_count, minimum=1, maximum=MAX_BUFFERED),
        "bytes of unconfirmed records above which `send` waits before it adds another; "
        "also the maximum size of a record",
        shown="32 MiB",
    )
    request_timeout: float = option(
        10.0,
        partial(check_number, minimum=0.001, maximum=HOUR),
        "seconds to wait for one response; no longer than `delivery_timeout`",
    )
