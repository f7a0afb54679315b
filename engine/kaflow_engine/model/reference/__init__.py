"""What files may say of sources, outputs, relations and connections, read from specifications."""
