"""What the trainers in cleanrl_style share by import: flags, runs, checkpoints, records, processes, evaluations."""
