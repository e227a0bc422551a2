"""`hytas train`: train one architecture, and export and check the model."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hytas.cli import options
from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.run import RunConfig
    from hytas.train import Recipe


_KEPT = ("space", "patch_size", "band_group", "bands", "scaling", "scale_by", "resample")
"""Settings that the model of `--from` decides."""


@click.command(cls=options.PanelCommand)
@click.argument("run", required=False)
@click.option("--arch", help="JSON file of an architecture, such as `architecture.json` of a run.")
@click.option(
    "--from",
    "start",
    help="Run whose trained model is trained further on --data. Its classes, bands, scaling and "
    "budget are kept. Other images may have another size, channels and classes.",
)
@click.option("--out", help="Folder of the new run.")
@options.setting_options(
    *("data", "split", "final"),
    more=("tune", "seed", "space"),
    space={"usual": "with --arch the built-in space that it names", "default": None},
)
@options.training_options
@options.device_option
@options.untrusted_option
@options.plugin_option()
@options.json_option
@click.pass_context
def train(ctx: click.Context, /, run: str | None, arch: str | None, **settings: Any) -> None:
    """Train, export and check one architecture.

    RUN is the folder of a search that stopped before its final training. For an architecture of
    your own, give --arch, --data and --out instead. --from trains the model of a run further, on a
    new scene.

    \b
    hytas train runs/ip
    hytas train --from runs/ip --data new.hdr --labels new.gpkg --class-field crop --out runs/new
    hytas train --arch architecture.json --data IndianPine.mat --out runs/mine
    """
    from hytas.cli.summary import print_outcome
    from hytas.run.display import Display

    as_json = settings.pop("as_json")
    given = [name for name in ctx.params if options.is_given(name)]
    with Display() as console:
        if run is not None:
            _refuse_with_run(ctx.command, given)
            outcome, data = _continue(run, settings, console)
        elif settings["start"] is not None:
            _refuse_with_start(given)
            outcome, data = _further(settings, console)
        else:
            outcome, data = _start(arch, settings, console)
    print_outcome(outcome, data, as_json=as_json)


def _refuse_with_run(command: click.Command, given: list[str]) -> None:
    """Refuse options for scene, split or seed: the run in the folder has its own."""
    allowed = ("run", "epochs", "recipe", "device", "plugins", "as_json")
    options = {parameter.name: parameter.opts[0] for parameter in command.params}
    if names := [options[name] for name in given if name not in allowed]:
        rule = "cannot be given with RUN, which has its own settings"
        raise InputError(", ".join(names), rule=rule, hint="leave out one")


def _refuse_with_start(given: list[str]) -> None:
    """Refuse options that the model of --from decides, and a missing scene."""
    if wrong := [name for name in ("arch", *_KEPT) if name in given]:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        raise InputError(names, rule="cannot be given with --from, whose model decides it")
    for name, what in (("data", "the new scene"), ("out", "the folder of the new run")):
        if name not in given:
            raise InputError("from", rule=f"needs --{name}, {what}")


def _further(settings: dict[str, Any], console: Any) -> tuple[Any, str]:
    from hytas.run.start import further_config

    start, out, device = (settings.pop(name) for name in ("start", "out", "device"))
    changes, presets, epochs = settings.pop("recipe"), None, settings.pop("epochs")
    usual, architecture = further_config(start)
    recipe, presets = _recipe(usual.recipe, usual.presets, {"recipe": changes, "epochs": epochs})
    given = {name: value for name, value in settings.items() if name not in _KEPT}
    config = replace(usual, recipe=recipe, presets=presets, **options.absolute_paths(given))
    return _train(architecture, config, out, device, console)


def _continue(run: str, settings: dict[str, Any], console: Any) -> tuple[Any, str]:
    from hytas.job import run_pipeline
    from hytas.run import RunFolder

    folder = RunFolder(run)
    config, _ = folder.read_config()
    if not folder.architecture.is_file():
        hint = "run `hytas search` on it again"
        raise InputError("run", run, "its search is not finished", hint)
    usual = config.recipe.with_epochs(None) if config.recipe.epochs == 0 else config.recipe
    recipe, presets = _recipe(usual, config.presets, settings)
    minutes = None if recipe.epochs else config.minutes  # a length of the user's wins
    config = replace(config, recipe=recipe, presets=presets, minutes=minutes)
    scene = config.load_scene()
    with options.run_argument():
        outcome = run_pipeline(
            config,
            scene,
            run,
            device=settings["device"],
            report=console,
            command=options.command_line(),
        )
    return outcome, config.first_data


def _start(arch: str | None, settings: dict[str, Any], console: Any) -> tuple[Any, str]:
    from hytas.run import RunConfig
    from hytas.run.folder import read_json
    from hytas.spaces import space_of
    from hytas.train import Recipe

    if settings["tune"] != RunConfig.tune:
        raise InputError("tune", settings["tune"], "is for --from, which begins with a model")
    out, device = settings.pop("out"), settings.pop("device")
    recipe, presets = _recipe(Recipe(), RunConfig.presets, settings)
    del settings["epochs"], settings["recipe"]
    if arch is None or out is None:
        raise InputError("train", rule="give RUN, or --arch and --out (and --data)")
    architecture = read_json(Path(arch))
    architecture.pop("costs", None)  # `hytas space sample` writes them next to the genes
    settings["space"] = settings["space"] or space_of(architecture)
    config = RunConfig(recipe=recipe, presets=presets, **options.absolute_paths(settings))
    return _train(architecture, config, out, device, console)


def _train(
    architecture: dict[str, Any], config: "RunConfig", out: str, device: str, console: Any
) -> tuple[Any, str]:
    """Train in a new folder; return the outcome and the name of the first scene."""
    from hytas.job import train_architecture

    outcome = train_architecture(
        architecture,
        config,
        config.load_scene(),
        out,
        device=device,
        report=console,
        command=options.command_line(),
    )
    return outcome, config.first_data


def _recipe(usual: "Recipe", presets: str, settings: dict[str, Any]) -> tuple["Recipe", str]:
    recipe, presets = options.recipe_of(usual, presets, settings["recipe"], settings["epochs"])
    if recipe.epochs == 0:
        raise InputError("epochs", 0, "must be 1 or more; with 0 nothing would be trained")
    return recipe, presets
