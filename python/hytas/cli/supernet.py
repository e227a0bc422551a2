"""`hytas supernet`: one set of weights for all networks of a budget, and its subnets."""

import shlex
from typing import TYPE_CHECKING, Any

import click

from hytas.cli import options
from hytas.cli.progress import echo
from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.run import Member

STEPS = 3000


@click.group()
def supernet() -> None:
    """Train weights that all networks of a budget share, and export the best of each size."""


@supernet.command(cls=options.PanelCommand)
@options.budgets_option(
    "The range that subnets are drawn from: 20K..500K-params; repeat for several."
)
@click.option("--out", required=True, help="Folder of the supernet.")
@click.option(
    "--method",
    type=click.Choice(["uniform", "sandwich"]),
    default="uniform",
    show_default=True,
    help="A step trains one drawn subnet, or the largest, the smallest and two drawn ones.",
)
@options.count_option("--steps", default=STEPS, text="Optimiser steps of the training.")
@options.recipe_option(
    "Setting of the training, such as mixup=0.4; or a preset of augmentation: plain, light or "
    "full; images or images-light. Repeatable.  [default: full; for images images-light]"
)
@options.setting_options("data", "split", more=("space", "seed"))
@options.device_option
@options.plugin_option()
def train(
    budgets: tuple[str, ...],
    out: str,
    method: str,
    steps: int,
    recipe: tuple[str, ...],
    device: str,
    **settings: Any,
) -> None:
    """Train the supernet of a budget range for a scene. The same command again resumes.

    \b
    hytas supernet train --data IndianPine.mat --budget 20K..500K-params --out sup
    hytas supernet export sup --budget 50K-params --budget 200K-params
    """
    from hytas.run import RunConfig, train_supernet
    from hytas.run.config import usual_preset
    from hytas.supernet import SupernetSettings
    from hytas.train import Recipe, leads, read_presets

    usual = Recipe(steps=steps, most_epochs=None, patience=1.0)
    settings["budget"] = ",".join(budgets)
    chosen, preset = options.recipe_of(usual, usual_preset(settings["data"]), recipe, None)
    if len(read_presets(preset)[0]) > 1:
        raise InputError("recipe", preset, "a supernet is trained by one preset")
    config = RunConfig(
        proxy="inherited",
        recipe=chosen,
        presets=preset,
        supernet_settings=SupernetSettings(method),
        **options.absolute_paths(settings),
    )
    path = options.with_display(train_supernet, config, out, device=device)
    if leads():
        echo(f"{path}\nnext: hytas supernet export {shlex.quote(out)} --budget ...")


@supernet.command()
@click.argument("folder")
@options.budgets_option(
    "A subnet is exported for each: 50K-params, 3ms-latency@t.json; repeatable."
)
@click.option(
    "--alone", is_flag=True, help="Train each architecture alone, too, for as many steps."
)
@click.option("--population", type=int, help="Architectures a generation.  [default: 50]")
@click.option("--generations", type=int, help="Generations of each search.  [default: 20]")
@options.device_option
@options.plugin_option(expose_value=False)
def export(
    folder: str,
    budgets: tuple[str, ...],
    alone: bool,
    device: str,
    **lengths: int | None,
) -> None:
    """Export the best subnet of each budget from the supernet in FOLDER.

    Each is an ordinary run in a folder of its own. family.csv and family.svg compare them.

    \b
    hytas supernet export sup --budget 50K-params --budget 200K-params --alone
    """
    from hytas.run import RunFolder, export_family

    config, _ = RunFolder(folder).read_config()
    chosen = [options.budget_from_the_root(budget) for budget in dict.fromkeys(budgets)]
    given = {name: value for name, value in lengths.items() if value is not None}
    with options.run_argument():
        members = options.with_display(
            export_family, config, folder, chosen, alone=alone, device=device, **given
        )
    _print_family(members)


def _print_family(members: "list[Member]") -> None:
    echo(f"\n{'budget':<24} {'params':>10}  validation OA  test OA  trained alone")
    for each in members:
        alone = "-" if each.alone is None else f"{each.alone:.4f}"
        echo(
            f"{each.name:<24} {each.costs.get('params', 0):>10,}  {each.validation:>13.4f}  "
            f"{each.test:.4f}   {alone}"
        )
    echo("\nvalidation pixels chose the subnets; test pixels did not")


@supernet.command()
@click.argument("folder")
@options.budgets_option("Subnets of like size are drawn inside it: 60K..140K-params.")
@options.count_option("--count", default=20, text="Subnets to draw.")
@options.device_option
@options.plugin_option(expose_value=False)
def rank(folder: str, budgets: tuple[str, ...], count: int, device: str) -> None:
    """Compare inherited weights with cheap rivals as ranks of subnets (AutoFormer, supplementary).

    Each subnet is trained alone by the supernet's recipe, which takes as long as COUNT final
    trainings. The same command again goes on where it was stopped.

    \b
    hytas supernet rank sup --budget 60K..140K-params --count 5
    """
    from hytas.run import RunFolder, rank_subnets

    config, _ = RunFolder(folder).read_config()
    budget = options.budget_from_the_root(",".join(budgets))
    with options.run_argument():
        rows, ranks = options.with_display(
            rank_subnets, config, folder, budget, count, device=device
        )
    echo(f"\n{'params':>10}  inherited  race    test accuracy, trained alone")
    for row in rows:
        figures = f"{row['inherited']:>9.4f}  {row['race']:.4f}  {row['alone_test']:.4f}"
        echo(f"{row['params']:>10,.0f}  {figures}")
    echo("inherited and race: mean probability of the true class on validation pixels")
    few = all(each.low is None for each in ranks)
    interval = f"no interval of {len(rows)} networks" if few else "interval of 90 %"
    echo(f"\n{'ranker':<12} Spearman with trained alone, {interval}")
    for each in ranks:
        shown = "-" if each.spearman is None else f"{each.spearman:+.2f}"
        ends = "" if each.low is None else f"  ({each.low:+.2f} to {each.high:+.2f})"
        echo(f"{each.ranker:<12} {shown}{ends}")
