"""Pixel goals: pictures to reach, their recording from a recipe, and the threshold of their distance."""
