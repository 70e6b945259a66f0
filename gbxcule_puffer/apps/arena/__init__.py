"""Train agents on games side by side, record what they reach, verify and compare the records."""
