"""`puffer show`: pictures of saved states."""
