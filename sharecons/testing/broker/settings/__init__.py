"""Every setting that the broker knows of, as tables: Kafka 4.3's names and defaults."""
