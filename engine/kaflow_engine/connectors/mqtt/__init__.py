"""MQTT: messages of a broker."""
