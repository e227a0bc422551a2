"""`hytas search`, also `hytas-search`: from a scene to a checked model in one command."""

from typing import TYPE_CHECKING, Any

import click

from hytas.cli import options
from hytas.cli.config_file import (
    ConfiguredCommand,
    config_option,
    configured_recipe,
    further_settings,
)

if TYPE_CHECKING:
    from hytas.run import RunConfig
    from hytas.run.display import Display


@click.command(cls=ConfiguredCommand)
@options.setting_options("data")
@options.budgets_option(
    "What the model may cost, such as 2M-params, 1.5M..2M-params or 500M-macs; repeatable."
)
@click.option(
    "--out",
    cls=options.Option,
    panel="Most used",
    help="Folder of the run.  [default: runs/NAME-BUDGET]",
)
@options.setting_options(
    *("search", "split", "race", "final"),
    effort={"show_default": "normal; quick for the synthetic scene"},
)
@options.training_options
@options.device_option
@options.workers_option
@options.untrusted_option
@options.plugin_option()
@options.json_option
@config_option
def search(
    budgets: tuple[str, ...],
    out: str | None,
    epochs: int | None,
    recipe: tuple[str, ...],
    device: str,
    workers: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Find, train and export the best transformer for a scene under a budget.

    Without --data it runs on the embedded synthetic scene. The same command resumes a run that was
    stopped at any moment, and shows a finished run again.

    \b
    hytas-search --data IndianPine.mat --budget 500K-params --proxy dss --out runs/ip
    hytas-search --data cube.mat --labels gt.mat --budget 2M-params
    hytas-search --config run.toml --seed 1
    """
    budget = ",".join(budgets)
    from hytas.run import EFFORTS, RunConfig
    from hytas.run.display import Display
    from hytas.train import Recipe

    console = Display()
    if settings["minutes"] is not None and not options.is_given("effort"):
        settings["effort"] = "thorough"
    elif settings["data"] == "synthetic" and not options.is_given("effort"):
        console.notice("a quick search on the synthetic scene; --data names another scene")
        settings["effort"] = "quick"
    settings |= further_settings()
    usual = configured_recipe(Recipe(steps=EFFORTS[settings["effort"]].steps))
    settings["budget"] = budget
    presets = settings.pop("presets", RunConfig.presets)
    chosen, presets = options.recipe_of(usual, presets, recipe, epochs)
    config = RunConfig(recipe=chosen, presets=presets, **options.absolute_paths(settings))
    _run(config, out, device, workers, console, as_json)


def _run(
    config: "RunConfig",
    out: str | None,
    device: str,
    workers: str | None,
    console: "Display",
    as_json: bool,
) -> None:
    from hytas.cli.summary import print_outcome
    from hytas.job import run_pipeline

    scene = config.load_scene()
    folder = out or f"runs/{scene.name}-{str(config.budget).replace(',', '-').replace('/', '-')}"
    with console:
        command = options.command_line()
        outcome = run_pipeline(
            config,
            scene,
            folder,
            device=device,
            report=console,
            command=command,
            workers=workers,
        )
    print_outcome(outcome, config.first_data, as_json=as_json)
