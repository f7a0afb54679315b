"""Kafka: clients, topics, records, errors."""
