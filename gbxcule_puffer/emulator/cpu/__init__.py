"""The readable interpreter: templates of the instructions (build/ fills them), the functions that they call, and the
main loop."""
