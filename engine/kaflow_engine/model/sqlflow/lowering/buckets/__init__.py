"""Tables with windows, which handlers fill."""
