"""PufferLib's own trainer, PuffeRL, on our environments: what it needs to find them, without a change to its files."""
