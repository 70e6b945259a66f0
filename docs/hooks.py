"""Hooks of the documentation site: pages from outside of docs/, the API reference, and the check of its docstrings."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import griffe  # pyright: ignore[reportMissingImports]
from mkdocs.plugins import get_plugin_logger  # pyright: ignore[reportMissingImports]
from mkdocs.structure.files import File, Files  # pyright: ignore[reportMissingImports]

ROOT = Path(__file__).resolve().parents[1]
log = get_plugin_logger("gbxcule")
# Page of the site: the file that it is made of.
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "roms.md": "roms/README.md",
}
# The API reference, by subject.
REFERENCE = {
    "Environments": ["gbxcule_puffer.env_creator", "gbxcule_puffer.env.env.GBxCuLEEnv"],
    "The machine": [
        "gbxcule_puffer.emulator.emulator.Emulator",
        "gbxcule_puffer.emulator.probes.access.HostAccess",
        "gbxcule_puffer.emulator.probes.until.ByteTest",
        "gbxcule_puffer.emulator.cartridge.load_cartridge",
        "gbxcule_puffer.emulator.cartridge.Cartridge",
        "gbxcule_puffer.emulator.snapshot.Snapshot",
        "gbxcule_puffer.emulator.pool.SnapshotPool",
    ],
    "Tasks": [
        "gbxcule_puffer.tasks.task.Task",
        "gbxcule_puffer.tasks.source.TaskSource",
        "gbxcule_puffer.tasks.goals.recipe.GoalRecipe",
        "gbxcule_puffer.tasks.goals.template.GoalTemplate",
        "gbxcule_puffer.tasks.goals.recipe.record_goal",
    ],
    "Other libraries": [
        "gbxcule_puffer.integrations.gym",
        "gbxcule_puffer.integrations.sb3",
        "gbxcule_puffer.integrations.torchrl.GameBoyTorchRL",
        "gbxcule_puffer.integrations.pyboy_api.game_boys.GameBoys",
    ],
    "Errors": ["gbxcule_puffer.errors"],
}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that lie outside of docs/, and the reference."""
    for page, source in PAGES.items():
        files.append(File.generated(config, page, content=moved((ROOT / source).read_text(), source)))
    files.append(File.generated(config, "reference.md", content=reference()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Names files that the site does not have instead of linking to them."""
    return without_links_to_files(markdown, page.file.src_uri)


def moved(text: str, source: str) -> str:
    """A page's text with its links as they are seen from docs/."""

    def link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        return f"]({posixpath.relpath(path, 'docs')}{match[2]})"

    return re.sub(r"\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)", lambda m: link(m).replace("None)", ")"), text)


def without_links_to_files(text: str, page: str) -> str:
    """A page's text in which links out of docs/ lead to the site's page of that file, or are its name."""
    sites = {f"../{source}": name for name, source in PAGES.items()}

    def link(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        if not target.startswith("../"):
            return match[0]
        if target in sites:
            return f"[{label}]({sites[target]}{anchor})"
        return label if target.endswith(label) else f"{label} (`{target.removeprefix('../')}`)"

    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)#]+)(#[^)]*)?\)", link, text)


def reference() -> str:
    """The reference's page; a warning, which ends a strict build, for each public thing without a docstring."""
    package = griffe.load("gbxcule_puffer", search_paths=[str(ROOT)])
    lines = ["# Reference", ""]
    for subject, names in REFERENCE.items():
        lines += [f"## {subject}", ""]
        for name in names:
            found = package[name.removeprefix("gbxcule_puffer.")]
            for missing in undocumented(found):
                log.warning(f"{missing} has no docstring")
            lines += [f"::: {name}", "    options:", "      heading_level: 3", ""]
    return "\n".join(lines)


def undocumented(item: Any) -> list[str]:
    """Public functions and classes without a docstring, of a module or class or what that is itself."""
    if item.is_alias or not (item.is_function or item.is_class or item.is_module):
        return []
    found = [] if item.docstring else [item.path]
    members = [] if item.is_function else [m for name, m in item.members.items() if not name.startswith("_")]
    return found + [path for member in members for path in undocumented(member)]
