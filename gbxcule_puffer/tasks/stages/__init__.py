"""Lists of stages: files that name them in order, and the stages opened for an env."""
