"""The code that the trainers in cleanrl_style share: flags, runs, checkpoints, records, processes, evaluations."""
