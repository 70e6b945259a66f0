"""The boards that show a run while it trains: TensorBoard, and optionally Weights & Biases."""
