"""The frames that a step takes and the pixels that it draws: defaults and limits."""

FRAMES_PER_STEP = 24
RELEASE_AFTER_FRAMES = 8
MOST_FRAMES = 20_000  # of a step: its T-cycles are an int32
MOST_COLOR_FRAMES = 15_000  # where the CPU may be twice as fast
SCREENS = {"half": (72, 80), "full": (144, 160)}  # rows and columns
PIXEL_STEPS = {"half": 2, "full": 1}
