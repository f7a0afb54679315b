"""Delivery of a task's rows in transactions."""
