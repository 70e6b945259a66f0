"""The typed exceptions of the package: each message is one line that names the input, the fault and the remedy."""


def printable(text: object) -> str:
    """Text, as from a file, with escapes for what would move the cursor, colour the terminal or begin a line."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))


class GBxCuLEError(ValueError):
    """Base of every error that bad input causes; the command line turns it into one line and exit code 2."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class RomError(GBxCuLEError):
    """A ROM file that is missing, truncated, oversized, damaged or of an unsupported mapper."""


class ActionError(GBxCuLEError):
    """Actions of a wrong dtype, shape, range or device."""


class GoalError(GBxCuLEError):
    """A goal template that is damaged or was made for another configuration."""


class StateError(GBxCuLEError):
    """A snapshot or save state that is damaged or belongs to another ROM or format."""


class DeviceError(GBxCuLEError):
    """A device that does not exist or has too little memory."""


class ConfigError(GBxCuLEError):
    """An option whose value is not allowed."""


class StorageError(GBxCuLEError):
    """A file that cannot be written, as on a full disk; the program ends with exit code 1."""
