"""A Game Boy Color's banks of VRAM and WRAM in the memory rows of all Game Boys, by PyBoy's addresses."""

from __future__ import annotations

import torch

from gbxcule_puffer.emulator import Emulator
from gbxcule_puffer.emulator import hardware as hw
from gbxcule_puffer.emulator.state import row_size
from gbxcule_puffer.errors import ConfigError
from gbxcule_puffer.integrations.pyboy_api.fields import Fields

BANKS = {hw.VRAM: 2, hw.WRAM: 8}


def offsets(emulator: Emulator, fields: Fields, bank: int | None, first: int, end: int) -> torch.Tensor | None:
    """Offsets in the rows of the bytes of an area, (num_envs, end - first) int64: in `bank`, or in the bank that each
    Game Boy sees there. None where there is one alone.

    Raises: ConfigError for a bank that there is none of.
    """
    start = hw.VRAM if hw.VRAM <= first < hw.CART_RAM else hw.WRAM if hw.WRAM <= first < hw.ECHO else None
    has_banks = start == hw.VRAM or hw.BANKED_WRAM <= first < hw.ECHO or hw.BANKED_ECHO <= first < hw.OAM
    if bank is not None and start is not None:
        count = BANKS[start] if emulator.model == "cgb" else 1
        if not 0 <= bank < count:
            raise ConfigError(f"bank {bank} at {first:04X} does not exist on this machine: give 0 to {count - 1}")
        has_banks = True
    if emulator.model != "cgb" or not has_banks:
        return None
    color = row_size(emulator.cartridge.ram_banks)
    seen = fields["vram_bank" if start == hw.VRAM else "wram_bank"].long()
    number = seen if bank is None else torch.full_like(seen, bank)
    if start == hw.VRAM:
        begin = torch.where(number != 0, color, 0) + first - hw.VRAM
    else:
        number = number.clamp(min=1) if bank is None else number
        further = color + hw.COLOR_WRAM + (number - 2) * hw.WRAM_BANK_SIZE
        low = hw.WRAM - hw.ROW_BASE + number * hw.WRAM_BANK_SIZE
        begin = torch.where(number > 1, further, low) + first % hw.WRAM_BANK_SIZE
    return begin[:, None] + torch.arange(end - first, device=begin.device)
