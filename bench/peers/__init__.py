"""Kafka Streams and Flink SQL beside the product, in the same rounds."""
