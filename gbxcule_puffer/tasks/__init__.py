"""What is to be done: actions, observations, goals, stages and quests."""
