"""Packaging of gbxcule-puffer; the exact versions that are tested together stand in constraints.txt."""

import re
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+?)"', (HERE / "gbxcule_puffer/__init__.py").read_text())
assert VERSION is not None
# What stands beside the package in a clone and goes into it in a wheel (gbxcule_puffer/layout.py).
INSIDE = {
    "cleanrl_style": ["*.py"],
    "roms": [
        "*.gb",
        "*.sym",
        "manifest.json",
        "*/game.toml",
        "*/played.json",
        "*/agent.*",
        "arena/*/*",
        "owned/*/game.toml",
        "homeward/*.json",
        "homeward/errand.py",
        "micro/*.gb",
    ],
}
EDITABLE = "editable_wheel" in sys.argv  # an editable installation imports from the clone


class BuildPy(build_py):
    """A wheel is complete: it has what stands beside the package in a clone."""

    def run(self) -> None:
        super().run()
        if EDITABLE:
            return
        package = Path(self.build_lib, "gbxcule_puffer")
        for folder, patterns in INSIDE.items():
            for source in sorted(path for pattern in patterns for path in Path(folder).glob(pattern)):
                self.mkpath(str((package / source).parent))
                self.copy_file(str(source), str(package / source))


setup(
    name="gbxcule-puffer",
    version=VERSION.group(1),
    description="Thousands of Game Boys stepped in lockstep by one Warp kernel, as a PufferLib environment",
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    author="The gbxcule-puffer authors",
    license_expression="MIT",
    license_files=["LICENSE"],
    keywords="reinforcement-learning game-boy emulator gpu warp pufferlib gymnasium pytorch",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: GPU :: NVIDIA CUDA",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: System :: Emulators",
        "Typing :: Typed",
    ],
    python_requires=">=3.11",
    packages=find_packages(include=["gbxcule_puffer*"]),
    package_data={
        "gbxcule_puffer": ["py.typed", "kernels.zip"],  # the second by `make wheel`
        "gbxcule_puffer.integrations.pufferl": ["*.ini"],
        "gbxcule_puffer.integrations.pufferlib5": ["*.cu", "*.ini"],
        "gbxcule_puffer.native": ["*.c", "*.h"],
        "gbxcule_puffer.trainers.wall": ["*.html", "*.js", "*.css", "*.svg"],
        "gbxcule_puffer.apps.play": ["*.html", "*.js", "*.css"],
    },
    cmdclass={"build_py": BuildPy},
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
        "websockets>=14",  # the wall: puffer watch, --watch
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
        "torchrl": ["torchrl"],
        "track": ["wandb"],  # --track
        "sweep": ["optuna>=4"],  # puffer sweep
        "docs": ["mkdocs-material", "mkdocstrings[python]", "mkdocs-jupyter"],
        "dev": [
            "pytest",
            "pytest-xdist",
            "ruff",
            "pyright",
            "build",
            "optuna>=4",
            "setuptools>=77",
            "nvidia-cuda-nvdisasm; sys_platform != 'darwin'",  # for benchmarks/kernel/turn_cost.py
        ],
    },
    entry_points={
        # The second name is ours alone: where all of PufferLib is installed, `puffer` is of what was installed last.
        "console_scripts": [f"{name} = gbxcule_puffer.cli:main" for name in ("puffer", "gbxcule-puffer")]
    },
)
