"""Device code that only a Game Boy Color has; the other files of hw/ call it where model.COLOR is set."""
