"""`python -m gbxcule_puffer`: the command line without an installed script."""

import sys

from gbxcule_puffer.cli import main

sys.exit(main())
