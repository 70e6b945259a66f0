"""The readable interpreter: templates of the instructions, which build/ fills, what they call, and the main loop."""
