"""`puffer arena ...`: train agents on games, record and verify what they reach, compare them."""
