"""Options that several commands share, and their types."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hytas.errors import InputError
from hytas.settings import plain_if_one
from hytas.spaces import DEFAULT_SPACE

if TYPE_CHECKING:
    from hytas.train import Recipe

Command = Callable[..., Any]

MOST_THREADS = 1024
"""CPU threads at most. Each thread takes memory, and a typing error should not use it up."""


class BudgetType(click.ParamType[str]):
    """A budget such as `2M-params`, as canonical text. It is checked before any file is read."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from hytas._engine import Budget

        try:
            return str(Budget.parse(value))
        except ValueError as error:
            raise InputError(str(error)) from None


class Renamed(click.Option):
    """An option that also has an old name, for scripts; the help does not show the old name."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the line of the help, with the first name only."""
        names = self.opts
        self.opts = names[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


def command_line() -> str:
    """Return the command that runs, as a shell takes it; empty inside another program."""
    context = click.get_current_context(silent=True)
    command = None if context is None else context.find_object(str)
    return command or ""


def _together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


bands_option = click.option(
    "--bands", help="Bands to use, such as 1-103,110-148. Dead bands are always dropped."
)


def _finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Refuse infinity; return None for NaN, which always means no data."""
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        raise InputError(f"nodata {value:g}: must be finite; infinite values always mean no data")
    return value


nodata_option = click.option(
    "--nodata",
    type=float,
    callback=_finite,
    help="No-data value of the cube.  [default: the file's own, if it names one]",
)

unlabelled_option = click.option(
    "--unlabelled", type=int, help="Another label of unlabelled pixels beside 0, such as 255."
)

zero_option = click.option(
    "--zero-is-a-class",
    is_flag=True,
    help="0 is a class, as in a map of 0 and 1. Class ids are then one more than the labels.",
)


class_field_option = click.option(
    "--class-field", help="Field of the classes, if --labels names polygons or points."
)

labels_crs_option = click.option(
    "--labels-crs",
    help="Coordinate system of the polygons or points, such as EPSG:32632, if their file names "
    "none.",
)


skip_unreadable_option = click.option(
    "--skip-unreadable", is_flag=True, help="Leave out image files that cannot be read."
)


def scene_options(required: bool) -> Callable[[Command], Command]:
    """Return the options --data, --labels and those that say how to read them.

    The command gets one scene as a text, and several as a tuple of texts.
    """
    options = _scene_options(required)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def gathered(*positional: Any, **values: Any) -> Any:
            for name in ("data", "labels"):
                values[name] = plain_if_one(values[name])
            return command(*positional, **values)

        return options(gathered)

    return decorate


def _scene_options(required: bool) -> Callable[[Command], Command]:
    return _together(
        click.option(
            "--data",
            multiple=True,
            required=required,
            default=None if required else ["synthetic"],
            show_default=not required,
            help="Scene: a file (MATLAB, ENVI, GeoTIFF, HDF5, NetCDF, NumPy), a name such as "
            "indian_pines, or `synthetic`. Repeatable: several scenes are learnt together. Or "
            "images: a folder with one folder a class, a .npz file, `digits` or `textures`.",
        ),
        click.option(
            "--labels",
            multiple=True,
            help="File of the label map, if it is another file; or of polygons or points (GeoJSON, "
            "GeoPackage, Shapefile, CSV, ENVI ROI). With several scenes, one for each, in order.",
        ),
        click.option(
            "--test-data",
            multiple=True,
            help="Scene that is never trained on, and is reported apart; repeatable.",
        ),
        click.option(
            "--test-labels",
            multiple=True,
            help="File of its labels, if it is another file; one for each, in order.",
        ),
        click.option(
            "--resample",
            is_flag=True,
            help="Take other scenes to the bands of the first one, by wavelength.",
        ),
        click.option(
            "--scale-by",
            type=click.Choice(["training", "scene"]),
            default="training",
            show_default=True,
            help="Scale by the training pixels; or first scale each scene by its own pixels, "
            "without labels, for a model that travels.",
        ),
        click.option("--data-dir", help="Folder with the files of a scene that is known by name."),
        click.option("--cube-key", help="Variable that holds the cube, if several could."),
        click.option(
            "--labels-key",
            help="Variable that holds the label map; `TRAIN,TEST` for a fixed split.",
        ),
        class_field_option,
        labels_crs_option,
        unlabelled_option,
        zero_option,
        nodata_option,
        click.option("--resize", type=int, help="Side to bring images to, in pixels."),
        skip_unreadable_option,
    )


_MOVED = {
    "data": "File of the run's scene, if it has moved; of several scenes, each in order.",
    "labels": "File of the scene's labels, if it has moved.",
    "test_data": "File of a scene that is only tested on, if it has moved.",
    "test_labels": "File of its labels, if it has moved.",
}


def moved_options(command: Command) -> Command:
    """Add options that say where the files of a run lie now; the command gets them as `moved`."""

    @functools.wraps(command)
    def gathered(*positional: Any, **values: Any) -> Any:
        moved = {name: values.pop(name) for name in _MOVED}
        return command(*positional, moved=moved, **values)

    return _together(
        *(
            click.option(f"--{name.replace('_', '-')}", multiple=True, help=text)
            for name, text in _MOVED.items()
        )
    )(gathered)


_SPLIT_OPTIONS = _together(
    click.option(
        "--split",
        type=click.Choice(["auto", "fixed", "random", "blocks", "folds", "polygons"]),
        default="auto",
        show_default=True,
        help="How to choose training pixels: the file's own maps (fixed), a draw from each class "
        "(random), or whole blocks or polygons with a guard band (blocks, folds, polygons). auto "
        "means fixed if the file has maps, random for a scene that is known by name, polygons if "
        "these are the labels, else blocks.",
    ),
    click.option(
        "--train-per-class",
        type=int,
        help="Training pixels per class. A random split takes at most half of a class.  "
        "[default: 50; all pixels of fixed maps]",
    ),
    click.option(
        "--train-fraction",
        type=float,
        help="Share of each class to train on, instead of a number. A random split takes at most "
        "half of a class.",
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
        help="Share of the training pixels that is held out for validation. If these are few, the "
        "race validates in folds.",
    ),
)


def _split_options(command: Command) -> Command:
    """Add the options of a split. The command gets them as one `SplitSettings`, named `split`."""

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
        help="Neighbouring bands in one token; an odd number.",
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


def recipe_option(help_text: str) -> Callable[[Command], Command]:
    """--recipe, which may be repeated: settings and presets, for `recipe_of`."""
    return click.option("--recipe", multiple=True, metavar="NAME=VALUE", help=help_text)


training_options = _together(
    click.option(
        "--epochs",
        "--retrain-epochs",
        "epochs",
        cls=Renamed,
        type=int,
        help="Epochs of the final training; 0 stops after the search.  [default: 1500 steps, "
        "and at most 200 epochs]",
    ),
    click.option(
        "--final-training-on",
        "--retrain-on",
        "final_training_on",
        cls=Renamed,
        type=click.Choice(["all", "train"]),
        default="all",
        show_default=True,
        help="Pixels of the final training: all labelled pixels that are not for testing (all), or "
        "the training pixels only (train). With train, validation pixels choose the best epoch.",
    ),
    click.option(
        "--seeds",
        type=int,
        default=1,
        show_default=True,
        help="Number of final trainings, for mean and standard deviation. The first is exported.",
    ),
    recipe_option(
        "Setting of the race and the final training, such as mixup=0.4 or class_weights=1; "
        "or a preset of augmentation: plain, light, full, images or images-light. Repeatable: of "
        "several presets, the race finds the best.  [default: full and plain; for images "
        "images-light and images; without a race, the first]"
    ),
    smooth_option(("auto", "guided", "none"), "by validation pixels", "auto"),
)

supernet_option = click.option(
    "--supernet", help="File of a trained supernet, for the proxy `inherited`."
)

uniform_option = functools.partial(
    click.option,
    "--uniform",
    type=click.Choice(["architectures", "choices"]),
    show_default=True,
    help="Draw every architecture with the same probability, or every choice of a gene.",
)

seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of all random numbers."
)

device_option = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where to score and train; auto uses a GPU if there is one.",
)


def _known_workers(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from hytas.workers import check_workers

    check_workers(value)
    return value


workers_option = click.option(
    "--workers",
    callback=_known_workers,
    help="Where to work side by side: a number of processes, ray, ray://HOST:PORT, or "
    "slurm:partition=NAME,time=MINUTES,... (docs/scale.md). The result is the same.  [default: "
    "one process a core]",
)


def budgets_option(help_text: str) -> Callable[[Command], Command]:
    """Return --budget, which must be given and may be repeated: the argument `budgets`."""
    return click.option(
        "--budget",
        "budgets",
        type=BudgetType(),
        multiple=True,
        required=True,
        help=help_text,
    )


def space_option(help_text: str) -> Callable[[Command], Command]:
    """--space, a built-in space or the path of a space file."""
    return click.option("--space", default=DEFAULT_SPACE, show_default=True, help=help_text)


json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def recipe_of(
    usual: "Recipe", presets: str, settings: Sequence[str], epochs: int | None
) -> tuple["Recipe", str]:
    """Return the recipe `usual` and the presets, changed by the values of --recipe and --epochs.

    Raises:
        InputError: both say how long to train, or a setting is not known.
    """
    from hytas.train import PRESETS

    named = [setting.strip() for setting in settings if setting.strip() in PRESETS]
    presets = ",".join(dict.fromkeys(named)) or presets
    settings = [setting for setting in settings if setting.strip() not in PRESETS]
    recipe = usual.changed(settings)
    if epochs is None:
        return recipe, presets
    if epochs < 0:
        raise InputError(f"epochs {epochs}: must be 0 or more")
    names = [setting.partition("=")[0].strip() for setting in settings]
    for name in ("steps", "epochs"):
        if name in names:
            raise InputError(
                f"epochs {epochs}: --recipe {name}=... also sets the length; give one of them"
            )
    return recipe.with_epochs(epochs), presets


@contextmanager
def run_argument() -> Iterator[None]:
    """Call the folder RUN in messages, not --out: the command goes on with an existing run."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace("--out ", "RUN ", 1)) from None


def absolute_paths(settings: dict[str, Any]) -> dict[str, Any]:
    """Return `settings` with absolute paths, so that later commands find the files.

    The paths are those of the scene, of a space file and of the latency tables in a budget. The
    name of a known scene stays a name, even if a file is called the same: write `./salinas` for
    the file.
    """
    from hytas.data.datasets import SCENES
    from hytas.data.images import IMAGE_SETS
    from hytas.spaces import with_files

    known = {*SCENES, *IMAGE_SETS, "synthetic"}

    def absolute(name: str, value: Any) -> Any:
        if value is None or (name.endswith("data") and value in known):
            return value
        if not isinstance(value, str):
            return tuple(absolute(name, one) for one in value)
        return str(Path(value).resolve()) if Path(value).exists() else value

    files = ("data", "labels", "test_data", "test_labels", "data_dir", "supernet")
    named = {name: absolute(name, settings[name]) for name in files if name in settings}
    if "space" in settings:
        space, budget = with_files(settings["space"], settings.get("budget"), _from_the_root)
        return {**settings, **named, "space": space, "budget": budget}
    return {**settings, **named}


def budget_from_the_root(budget: str) -> str:
    """A budget with the paths of its latency tables from the root."""
    from hytas.spaces import with_files

    return str(with_files("", budget, _from_the_root)[1])


def _from_the_root(path: str) -> str:
    """Return the absolute path, unless it has a comma, which would end the term of a budget."""
    whole = str(Path(path).resolve())
    return path if "," in whole else whole
