"""The log of a partition: record batches as producers wrote them."""
