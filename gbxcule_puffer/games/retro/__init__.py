"""stable-retro's folders of Game Boy games, read and converted into ours; nothing in them is run."""
