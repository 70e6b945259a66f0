"""`puffer stage`: the start states and goals of a stage file or a list of stages."""

from __future__ import annotations

from gbxcule_puffer.apps.flags import GAME
from gbxcule_puffer.apps.goal.command import TaskFlags, report_goal
from gbxcule_puffer.commandline import command, flag
from gbxcule_puffer.env.option_flags import option_flag


@command
class Stage(TaskFlags):
    """Make the start states and goals of a stage file or a list of stages."""

    stage: str = flag(help="JSON with rom, start_actions and solve_actions, or stages.json", metavar="FILE")
    model: str = option_flag("model", GAME)

    def run(self) -> None:
        from gbxcule_puffer.tasks.goals.recipe import GoalRecipe
        from gbxcule_puffer.tasks.stages.list import is_stage_list, make_stages

        settings = self.settings(model=self.model)
        if is_stage_list(self.stage):
            rom, path = make_stages(self.stage, self.out, settings)
            print(f"ROM     {rom}\nstages  {path}")
        else:
            report_goal(GoalRecipe.load(self.stage, settings).make(self.out))


COMMAND = Stage
