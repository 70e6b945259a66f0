"""Names of PyBoy 2.8.1 that GameBoys does not have, with what to write instead; docs/pyboy.md says why."""

from __future__ import annotations

from typing import NoReturn

from gbxcule_puffer.errors import ConfigError

ONE = "it is of one Game Boy: use PyBoy, and load its state here"
NO_WINDOW = "leave it out, there is no window; `puffer play` shows a game"
TILES = "memory[0x8000:0x9800] has the tiles"
# Options of PyBoy(...): values that change nothing here, and what to write for others.
OPTIONS: dict[str, tuple[tuple[object, ...] | None, str]] = {
    "ram_file": ((None,), "write emulator.reset(save_ram=file.read())"),
    "rtc_file": ((None,), "load a state, which has the clock"),
    "window": (("null", "headless", "dummy"), NO_WINDOW),
    "scale": (None, ""),
    "bootrom": ((None,), "leave it out, the game begins after the boot ROM"),
    "sound_volume": (None, ""),
    "sound_emulated": ((False,), "give False, which is what the Game Boys are like"),
    "sound_sample_rate": (None, ""),
    "gameshark": ((None,), "write to memory after each tick"),
    "no_input": (None, ""),
    "log_level": (None, ""),
    "color_palette": ((None,), "screen.shades are 0 to 3: colour them yourself"),
    "cgb_color_palette": ((None,), "screen.shades are 0 to 3: colour them yourself"),
    "title_status": ((False,), NO_WINDOW),
    "serial_shared_memory": ((None,), "leave it out, no cable is connected"),
    "serial_interrupt_based": ((False,), "leave it out, no cable is connected"),
    "sgb_border": ((False,), "leave it out, there is no Super Game Boy"),
    "autopause": ((False,), NO_WINDOW),
    "breakpoints": ((None,), ONE),
    "printer": ((False,), "leave it out, there is no printer"),
    "printer_output": ((None,), "leave it out, there is no printer"),
    "record_input": ((False,), ONE),
    "rewind": ((False,), "take emulator.save() and emulator.load()"),
}
GAME_BOYS = {
    "events": "button_press and button_release take buttons",
    "game_area_collision": "a Task says what counts in your game",
    "game_wrapper": "a Task says what counts in your game",
    "gameshark": "write to memory after each tick",
    "get_tile": TILES,
    "hook_deregister": "leave it out, a hook costs nothing",
    "memory_scanner": ONE,
    "paused": "leave it out, the Game Boys run in tick only",
    "printer_image": "there is no printer",
    "rom_symbols": "symbol_lookup(name) has the addresses",
    "rom_symbols_inverse": "symbol_lookup(name) has the addresses",
    "rtc_lock_experimental": "leave it out, the clock goes by frames, not by the time of day",
    "rumble": "there is no motor",
    "send_input": "write button(name, delay), button_press(name) or button_release(name)",
    "set_color_palette": "screen.shades are 0 to 3: colour them yourself",
    "sgb": "there is no Super Game Boy",
    "sgb_border": "there is no Super Game Boy",
    "sound": "there is no sound",
    "title_status": "there is no window",
    "window_title": "there is no window",
}
SCREEN = {
    "raw_buffer": "screen.ndarray has the pictures",
    "raw_buffer_format": "screen.ndarray is RGBA",
    "tilemap_position_list": "the scroll position of each line is not kept; get_tilemap_position() has the last",
}
TILE_MAP = {
    "map_offset": "emulator.registers(env)['lcdc'] selects it",
    "search_for_identifiers": "write tilemap[:, :] == identifier",
    "tile": TILES,
    "use_tile_objects": TILES,
}
SPRITE = {"tiles": TILES, "sprite_index": "it is the number that you gave"}


def take_options(keywords: dict[str, object]) -> None:
    """Removes options of PyBoy that change nothing here, and gives `model` for `cgb`.

    Raises: ConfigError for a value that cannot be had.
    """
    if "cgb" in keywords:
        cgb = keywords.pop("cgb")
        if "model" in keywords or cgb not in (None, True, False):
            raise ConfigError(f"GameBoys cgb={cgb!r:.40}: give model='dmg', 'cgb' or 'auto', or cgb, not both")
        keywords["model"] = "auto" if cgb is None else "cgb" if cgb else "dmg"
    for name in [name for name in keywords if name in OPTIONS]:
        value = keywords.pop(name)
        harmless, remedy = OPTIONS[name]
        if harmless is not None and not any(value is one or value == one for one in harmless):
            raise ConfigError(f"GameBoys does not take {name}={value!r:.40}: {remedy} (docs/pyboy.md)")


def refuse(owner: str, lines: dict[str, str], name: str) -> NoReturn:
    """Raises: AttributeError for a name that `owner` does not have, with what to write."""
    remedy = f"{lines[name]} (docs/pyboy.md)" if name in lines else "docs/pyboy.md says what is there"
    raise AttributeError(f"{owner} has no {name}: {remedy}")
