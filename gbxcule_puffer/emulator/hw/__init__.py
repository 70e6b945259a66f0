"""Device code of the hardware: one file a device; they meet only through Machine and Cpu."""
