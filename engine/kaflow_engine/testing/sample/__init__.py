"""Sample records for the topics of the examples."""
