"""The pipeline's own topic: epochs, markers, and fencing."""
