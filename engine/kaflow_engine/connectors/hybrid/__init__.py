"""Sources in phases: tables and files that end, and then a topic of Kafka from where they do."""
