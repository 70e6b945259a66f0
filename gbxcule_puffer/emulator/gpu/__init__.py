"""The data path: all common instructions as one read, one ALU operation and one write, driven by a table."""
