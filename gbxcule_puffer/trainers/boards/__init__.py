"""The boards that show a run while it goes on: TensorBoard, and Weights & Biases where it is asked for."""
