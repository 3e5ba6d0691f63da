"""What a partition keeps: batches of records, as producers wrote them."""
