"""Device code of the Game Boy Color; the other files of hw/ call it if model.COLOR is set."""
