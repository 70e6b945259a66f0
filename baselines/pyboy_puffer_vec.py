"""The speed of PyBoy on all cores, behind the environment's API: `puffer bench pyboy_puffer_vec`.

    python baselines/pyboy_puffer_vec.py --rom homeward --num-envs 64

The environment itself is gbxcule_puffer/baselines/pyboy_puffer_vec.py; all flags of `puffer bench` work here.
"""

import sys

from gbxcule_puffer.cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", "pyboy_puffer_vec", *sys.argv[1:]]))
