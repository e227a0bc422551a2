"""Options that several commands share, and their types."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hytas.errors import InputError

if TYPE_CHECKING:
    from hytas.train import Recipe

Command = Callable[..., Any]

MOST_THREADS = 1024
"""CPU threads at most: each takes memory, and a slip of the keyboard should not take it all."""


class BudgetType(click.ParamType[str]):
    """A budget such as `2M-params`, in canonical text; checked before anything is read."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from hytas._engine import Budget

        try:
            return str(Budget.parse(value))
        except ValueError as error:
            raise InputError(str(error)) from None


class Renamed(click.Option):
    """An option with an old name behind its name; scripts may use it, and help does not show it."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The line of the help, with the first name alone."""
        names = self.opts
        self.opts = names[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


def _together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


bands_option = click.option(
    "--bands", help="Bands to use, such as 1-103,110-148; dead bands are dropped anyway."
)


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """NaN is no data anyway."""
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        raise InputError(f"nodata {value:g}: must be a finite number; infinite values are no data")
    return value


nodata_option = click.option(
    "--nodata",
    type=float,
    callback=_finite,
    help="Value that stands for no data in the cube; the file's own if it says so.",
)

unlabelled_option = click.option(
    "--unlabelled", type=int, help="Label that marks unlabelled pixels, as 0 does; such as 255."
)

zero_option = click.option(
    "--zero-is-a-class",
    is_flag=True,
    help="0 labels a class, as in a map of 0 and 1; ids are then one more than the labels.",
)


def scene_options(required: bool) -> Callable[[Command], Command]:
    """--data, --labels and the names of variables in them."""
    return _together(
        click.option(
            "--data",
            required=required,
            default=None if required else "synthetic",
            show_default=not required,
            help="Scene: a file (MATLAB, ENVI, GeoTIFF, HDF5, NetCDF, NumPy), a name such as "
            "indian_pines, or `synthetic`.",
        ),
        click.option("--labels", help="File of the label map, if it is not in the scene's."),
        click.option("--data-dir", help="Folder with the files of a scene known by name."),
        click.option("--cube-key", help="Variable that holds the cube, where there are several."),
        click.option(
            "--labels-key", help="Variable of the label map; `TRAIN,TEST` for a fixed split."
        ),
        unlabelled_option,
        zero_option,
        nodata_option,
    )


_SPLIT_OPTIONS = _together(
    click.option(
        "--split",
        type=click.Choice(["auto", "fixed", "random", "blocks", "folds"]),
        default="auto",
        show_default=True,
        help="Training pixels: the file's own maps (fixed), drawn per class (random), or whole "
        "blocks with a guard band (blocks, folds); auto is fixed where the file has maps, random "
        "for a scene known by name, else blocks.",
    ),
    click.option(
        "--train-per-class",
        type=int,
        help="Training pixels per class; a random split takes at most half of a class. Without it "
        "fixed maps are used whole.  [default: 50]",
    ),
    click.option(
        "--train-fraction",
        type=float,
        help="Share of each class to train on, instead; a random split takes at most half.",
    ),
    click.option(
        "--block", type=int, default=16, show_default=True, help="Side of a block, in pixels."
    ),
    click.option("--folds", type=int, default=5, show_default=True, help="Folds of blocks."),
    click.option(
        "--fold", type=int, default=0, show_default=True, help="The fold to test on, from 0."
    ),
    click.option(
        "--validation-fraction",
        type=float,
        default=0.2,
        show_default=True,
        help="Share of the training pixels held out for validation; where that is few, the race "
        "validates in folds.",
    ),
)


def _split_options(command: Command) -> Command:
    """Add the options of a split; the command gets them as one `SplitSettings`, called `split`."""

    @functools.wraps(command)
    def gathered(*positional: Any, **values: Any) -> Any:
        from hytas.data.splits.settings import OPTIONS, SplitSettings

        given = {name: values.pop(name) for name in OPTIONS}
        return command(*positional, split=SplitSettings.from_options(given), **values)

    return _SPLIT_OPTIONS(gathered)


preparation_options = _together(
    _split_options,
    click.option("--patch-size", type=int, default=7, show_default=True, help="Side of a patch."),
    click.option(
        "--band-group",
        type=int,
        default=3,
        show_default=True,
        help="Neighbouring bands in one token; odd.",
    ),
    bands_option,
    click.option(
        "--scaling",
        type=click.Choice(["standard", "minmax"]),
        default="standard",
        show_default=True,
        help="Scaling of each band, fitted on the training pixels.",
    ),
)


def smooth_option(
    choices: tuple[str, ...], default: str, value: str | None = None
) -> Callable[[Command], Command]:
    """--smooth, with these choices; `default` says who chooses where it is not given."""
    return click.option(
        "--smooth",
        type=click.Choice(choices),
        default=value,
        help="Smooth class probabilities by a guided filter, which removes speckle from the map; "
        f"or not (none).  [default: {default}]",
    )


training_options = _together(
    click.option(
        "--epochs",
        "--retrain-epochs",
        "epochs",
        cls=Renamed,
        type=int,
        help="Epochs of the final training; 0 stops after the search.  [default: 1500 steps' "
        "worth, but no more than 200]",
    ),
    click.option(
        "--final-training-on",
        "--retrain-on",
        "final_training_on",
        cls=Renamed,
        type=click.Choice(["all", "train"]),
        default="all",
        show_default=True,
        help="Pixels of the final training: with the validation pixels (all), or without them "
        "(train), which then pick its best epoch.",
    ),
    click.option(
        "--seeds",
        type=int,
        default=1,
        show_default=True,
        help="Final trainings, to report mean and standard deviation; the first is exported.",
    ),
    click.option(
        "--recipe",
        multiple=True,
        metavar="NAME=VALUE",
        help="Setting of race and final training, as mixup=0.4 or class_weights=1; repeat for "
        "several.",
    ),
    smooth_option(("auto", "guided", "none"), "by validation pixels", "auto"),
)

seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of all random numbers."
)

device_option = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where to score and train; auto takes a GPU where there is one.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def recipe_of(usual: "Recipe", settings: Sequence[str], epochs: int | None) -> "Recipe":
    """The `Recipe` of --recipe and --epochs, changing `usual`.

    Raises:
        InputError: both say how long to train, or a setting is none.
    """
    recipe = usual.changed(settings)
    if epochs is None:
        return recipe
    if epochs < 0:
        raise InputError(f"epochs {epochs}: must be 0 or more")
    names = [setting.partition("=")[0].strip() for setting in settings]
    for name in ("steps", "epochs"):
        if name in names:
            raise InputError(f"epochs {epochs}: --recipe {name}=... says how long to train, too")
    return recipe.with_epochs(epochs)


@contextmanager
def run_argument() -> Iterator[None]:
    """Name the folder RUN, not --out, in messages of a command that goes on with a run."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace("--out ", "RUN ", 1)) from None


def absolute_paths(settings: dict[str, Any]) -> dict[str, Any]:
    """`settings` with their files named from the root, so that later commands find them.

    These are the scene's, a space file and the latency tables of a budget. A scene's name stays one
    where a file or folder is called so, too: `./salinas` is the file.
    """
    from hytas.data.datasets import SCENES
    from hytas.spaces import with_files

    known = {*SCENES, "synthetic"}
    named = {
        name: str(Path(settings[name]).resolve())
        for name in ("data", "labels", "data_dir")
        if settings[name] is not None and Path(settings[name]).exists()
        if not (name == "data" and settings[name] in known)
    }
    if "space" in settings:
        space, budget = with_files(settings["space"], settings.get("budget"), _from_the_root)
        return {**settings, **named, "space": space, "budget": budget}
    return {**settings, **named}


def _from_the_root(path: str) -> str:
    """The path from the root; one with a comma stays, for a comma ends the term of a budget."""
    whole = str(Path(path).resolve())
    return path if "," in whole else whole
