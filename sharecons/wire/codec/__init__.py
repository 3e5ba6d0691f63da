"""Encoding and decoding, common to all APIs.

Read `api` (what one API's module provides), `registry` (finds it, and a version),
`frames` (length and header), `fields` (fields decoded by hand), `schema_loader`,
`kio_guard` (validates before kio parses) and `kio_schemas`.
"""
