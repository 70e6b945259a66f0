"""Device code of the hardware, one file per device; devices share only Machine and Cpu."""
