"""Decoding and encoding of record batches; no I/O.

Read `batch_header` and `record_decoder` (with `large_records`, which copies
no batch), `batch` (what a ShareFetch returned),
`offset_accounting` (which acquired offset has a record) with `offset_set`, `columns`
and `columns_reader` (the same for Arrow), `message_sets` (formats 0 and 1, with
`lz4_header`), `encoder`, `compression` with
`sized_frames`.
"""
