"""The wall: the Game Boys of an env, moving, as a web page. Nothing is imported here: its server does without torch."""

DEFAULT_ADDRESS = "127.0.0.1:8484"
