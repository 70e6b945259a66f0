"""Device code of the LCD: its modes and registers, and how lines are drawn."""
