"""What several tests need: environments, learners, the oracle."""
