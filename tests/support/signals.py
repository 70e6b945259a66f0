"""Signals of processes that tests start."""

import signal
from functools import partial

HEARS_CTRL_C = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
"""A preexec_fn: a shell's background job ignores Ctrl-C, and so do the processes that it starts."""
