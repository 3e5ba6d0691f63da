"""`EmbeddedBroker`: a Kafka in this process."""
