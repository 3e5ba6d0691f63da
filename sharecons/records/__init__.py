"""Decoding and encoding of record batches; no I/O.

Read `layout` (headers and records), `batch` (what a ShareFetch returned),
`offset_accounting` (which acquired offset has a record) with `offset_set`, `columns`
and `columns_reader` (the same for Arrow), `encoder`, `compression`.
"""
