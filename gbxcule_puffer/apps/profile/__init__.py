"""`puffer profile`: what limits a game's speed, in plain words."""
