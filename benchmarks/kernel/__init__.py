"""The GPU step kernel and the trees it came from: speed, size, stops, slowest warps."""
