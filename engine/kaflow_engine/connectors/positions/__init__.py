"""Tables with positions in topics, as another program keeps them."""
