"""Spark itself: Java, jars, sessions, and the machine or cluster they run on."""
