"""Tasks: actions, observations, goals, stages and quests."""
