"""`puffer bench`: contenders step the same games with the same actions in turn; records, a report and a plot."""

NAMES = ("gbxcule", "pyboy_puffer_single", "pyboy_puffer_vec")
STAGES = ("emulate_only", "reward_only", "obs_only", "full_step")
ACTIONS = ("random", "striped", "noop")
