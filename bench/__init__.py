"""Measures the product from outside: throughput, latency, memory, and how long it lasts."""
