"""The speed of PyBoy in one process, behind the environment's API: `puffer bench pyboy_puffer_single`.

    python baselines/pyboy_puffer_single.py --rom homeward --num-envs 1

The environment itself is gbxcule_puffer/baselines/pyboy_puffer_single.py; all flags of `puffer bench` work here.
"""

import sys

from gbxcule_puffer.cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", "pyboy_puffer_single", *sys.argv[1:]]))
