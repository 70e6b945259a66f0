"""Train agents on several games, record what they reach, verify and compare the records."""
