"""Pixel goals: pictures to reach, how they are recorded from a recipe, and the threshold of their distance."""
