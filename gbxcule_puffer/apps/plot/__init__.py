"""`puffer plot`: draw the learning curve of a run."""
