"""`puffer scan`: what the bytes of a game mean."""
