"""Writers of documentation pages: each reads records of benchmarks/results and rewrites its page."""
