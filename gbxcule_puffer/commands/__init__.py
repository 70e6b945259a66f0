"""The commands of `puffer`, a file each: `add(commands)` gives a command its parser; what it runs is imported late."""
