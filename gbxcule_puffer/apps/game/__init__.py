"""Make, check, list, fetch, solve and import folders of games."""
