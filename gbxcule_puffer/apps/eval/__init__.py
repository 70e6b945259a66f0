"""`puffer eval`: play episodes with a checkpoint."""
