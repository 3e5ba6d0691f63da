"""Record batches made by hand, valid or invalid."""

import struct
import time

from crc32c import crc32c

__all__ = [
    "NOW",
    "BatchHead",
    "batch",
    "batches_in",
    "patched",
    "sealed",
    "transactional",
]

HEAD = struct.Struct(">qiibIhiqqqhii")
TRANSACTIONAL = 0x10

# Now: Kafka starts a new file after a batch that is a week old, and a fetch does not
# continue in the next file.
NOW = time.time_ns() // 1_000_000


def batch(
    *values,
    producer=(-1, -1, -1),
    attributes=0,
    timestamp=NOW,
    times=None,
    keys=None,
    compress=bytes,
    **wrong,
):
    """Return a batch; `producer` is an id, an epoch and the first sequence.

    `wrong` takes base_offset, last_offset_delta and record_count.
    """
    values = values or ("a",)
    times = times or [timestamp] * len(values)
    body = b"".join(
        record(index, value, key, time - timestamp)
        for index, (value, key, time) in enumerate(
            zip(values, keys or [None] * len(values), times, strict=True)
        )
    )
    body = compress(body)
    producer_id, epoch, sequence = producer
    head = HEAD.pack(
        wrong.get("base_offset", 0),
        HEAD.size - 12 + len(body),
        -1,
        2,
        0,
        attributes,
        wrong.get("last_offset_delta", len(values) - 1),
        timestamp,
        max(times),
        producer_id,
        epoch,
        sequence,
        wrong.get("record_count", len(values)),
    )
    return sealed(head + body)


def transactional(producer_id, epoch, sequence, *values):
    producer = producer_id, epoch, sequence
    return batch(*values, producer=producer, attributes=TRANSACTIONAL)


def record(index, value, key, delta):
    content = b"\0" + varint(delta) + varint(index) + sized(key) + sized(value.encode())
    content += varint(0)
    return varint(len(content)) + content


def sized(content):
    return varint(-1) if content is None else varint(len(content)) + content


def varint(number):
    left = (number << 1) ^ (number >> 63)
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*written, left])


def sealed(content):
    """Return the batch with a correct CRC."""
    crc = struct.pack(">I", crc32c(content[21:]))
    return content[:17] + crc + content[21:]


def patched(content, at, *written):
    """Return the batch with other bytes at one position."""
    return content[:at] + bytes(written) + content[at + len(written) :]


class BatchHead:
    """The header and body of a batch, decoded."""

    def __init__(self, content):
        fields = HEAD.unpack_from(content)
        self.base_offset, self.length, self.leader_epoch, self.magic = fields[:4]
        self.attributes, self.last_offset_delta = fields[5:7]
        self.max_timestamp, self.producer_id, self.producer_epoch = fields[8:11]
        self.base_sequence, self.record_count = fields[11:]
        self.is_sound = fields[4] == crc32c(content[21 : 12 + self.length])
        self.body = content[HEAD.size : 12 + self.length]


def batches_in(records):
    """Return the headers of whole batches, and the number of remaining bytes."""
    heads, at = [], 0
    while len(records) - at >= HEAD.size:
        head = BatchHead(records[at:])
        if 12 + head.length > len(records) - at:
            break
        heads.append(head)
        at += 12 + head.length
    return heads, len(records) - at
