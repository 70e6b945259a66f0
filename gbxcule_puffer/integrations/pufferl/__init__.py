"""PufferLib's own trainer, PuffeRL, on our environments: everything that it needs to find them, without a change to its
files."""
