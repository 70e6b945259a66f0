"""`puffer game ...`: folders of games, made, checked and read from other projects."""
