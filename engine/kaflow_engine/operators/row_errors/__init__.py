"""Rows that the SQL fails on: found, taken out alone, and made dead letters."""
