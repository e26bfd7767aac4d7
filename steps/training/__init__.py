"""Training: one loop for all networks, its checkpoints, the training audio, devices."""
