"""Metrics of one consumer; `counters` holds them."""
