"""`puffer watch`: a run's agent at play, as a web page."""
