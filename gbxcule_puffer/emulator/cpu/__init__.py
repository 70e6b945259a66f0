"""The readable interpreter: templates of the instructions, the generator that fills them, and the loop around them."""
