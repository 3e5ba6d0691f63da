"""Encoding and decoding, common to all APIs.

Read `api` (what one API's module provides), `registry` (finds it, and chooses a
version), `frames` (length and header) with `frame_memory`, `fields` (encodes and
decodes without kio), `schema_loader`, `kio_guard` (validates before kio parses) and
`kio_schemas`.
"""
