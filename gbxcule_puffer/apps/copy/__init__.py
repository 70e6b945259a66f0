"""`puffer copy`: a trainer or our game, to be edited."""
