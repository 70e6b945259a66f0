"""The meaning of a game's memory, found by playing it many times at once: which bytes are position, score, lives."""
