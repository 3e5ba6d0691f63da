"""Tables of all settings that the brokers know: Kafka 4.3's names and defaults."""
