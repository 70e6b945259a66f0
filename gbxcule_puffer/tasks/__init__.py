"""Tasks: actions, observations, goals and stages."""
