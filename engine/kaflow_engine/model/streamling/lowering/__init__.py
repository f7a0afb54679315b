"""What nodes become: topics, sources, relations and outputs of a pipeline."""
