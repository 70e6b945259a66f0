"""Packaging of gbxcule-puffer; the exact versions that are tested together stand in constraints.txt."""

import re
from pathlib import Path

from setuptools import find_packages, setup

VERSION = re.search(
    r'__version__ = "(.+?)"', Path(__file__).with_name("gbxcule_puffer").joinpath("__init__.py").read_text()
)
assert VERSION is not None

setup(
    name="gbxcule-puffer",
    version=VERSION.group(1),
    description="Thousands of Game Boys stepped in lockstep by one Warp kernel, as a PufferLib environment",
    license="MIT",
    python_requires=">=3.11",
    packages=find_packages(include=["gbxcule_puffer*", "baselines*"]),
    package_data={"gbxcule_puffer.integrations.pufferl": ["*.ini"]},
    install_requires=[
        "warp-lang==1.19.0",  # exact: the kernels need wp.ref structs (since 1.15) and were measured with this one
        "torch>=2.11",  # tensors, the learner and zero-copy views of the emulator's buffers
        "pufferlib-core==3.0.5",  # exact: PufferEnv and vector.make of PufferLib without its C extensions
        "pyboy==2.8.1",  # exact: the oracle; its timing is the contract
        "libcst",  # fills the operand slots of the instruction templates
        "numpy",
        "gymnasium",
        "tyro",  # the trainers' flags
        "tensorboard",
        "matplotlib",  # the plots of `puffer bench` and `puffer plot`
        "pillow",  # pictures and GIFs
        "psutil",  # memory and processes of a benchmark
    ],
    extras_require={
        # All of PufferLib instead of its core. Both install the `pufferlib` package: use an environment of its own. Its
        # build downloads more; `make puffer` builds it from the package registry alone.
        "puffer": ["pufferlib==3.0.0"],
        "record": ["imageio[ffmpeg]"],  # MP4
        "sb3": ["stable-baselines3"],
        "dev": ["pytest", "pytest-xdist", "ruff", "pyright"],
    },
    entry_points={"console_scripts": ["puffer = gbxcule_puffer.cli:main"]},
)
