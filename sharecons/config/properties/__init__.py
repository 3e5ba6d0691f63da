"""Kafka's properties files: what is in them, and what it means for this client."""
