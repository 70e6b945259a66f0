"""Device code: one room for each part of the hardware; they meet only through Machine and Cpu."""
