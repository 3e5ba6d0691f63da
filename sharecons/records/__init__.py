"""Decoding and encoding of record batches; no I/O.

Read `layout` (the header), `record_decoder` (the records), `batch` (what a ShareFetch
returned), `offset_accounting` (which acquired offset has a record), `columns` and
`columns_reader` (the same for Arrow), `encoder`, `compression`.
"""
