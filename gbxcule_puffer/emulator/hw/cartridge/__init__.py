"""Device code of the cartridge: bank controllers and the real-time clock."""
