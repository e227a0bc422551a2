"""Options of scenes: their files, how to read them, how to split and scale them."""

import functools
import math
from collections.abc import Callable
from typing import Any

import click

from hytas.cli.options.common import Command, is_given, together
from hytas.errors import InputError
from hytas.settings import plain_if_one

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


class UnlabelledType(click.ParamType[int | str | None]):
    """A whole number, a colour such as #ffffff, or nan."""

    name = "number or colour"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str | None:
        """Return a number or a colour; None for NaN, which is always unlabelled."""
        from hytas.data.labels.options import parse_unlabelled

        return parse_unlabelled(value).given


axes_option = click.option(
    "--axes",
    help="Order of the axes of the cube's array, such as band,y,x.  [default: what the file says]",
)

unlabelled_option = click.option(
    "--unlabelled",
    type=UnlabelledType(),
    help="Another label of unlabelled pixels beside 0, such as 255; or their colour in a picture, "
    "such as #ffffff.",
)

class_names_option = click.option(
    "--class-names",
    help="Names of classes by their number in the file: 1=corn,2=soy, or a CSV file of numbers and "
    "names.",
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
            alone = isinstance(values["data"], str) and not values["test_data"]
            if values["resample"] and alone and is_given("data"):
                raise InputError(
                    "resample: takes other scenes to the bands of the first, and only "
                    f"{values['data']} is given"
                )
            return command(*positional, **values)

        return options(gathered)

    return decorate


def _scene_options(required: bool) -> Callable[[Command], Command]:
    return together(
        click.option(
            "--data",
            multiple=True,
            required=required,
            default=None if required else ["synthetic"],
            show_default=not required,
            help="Scene: a file (MATLAB, ENVI, GeoTIFF, HDF5, NetCDF, NumPy), a name such as "
            "indian_pines, or `synthetic`. Repeatable: several scenes are learnt together. Or a "
            "table of spectra (CSV, Parquet, array; docs/spectra.md). Or images: a folder with one "
            "folder a class, a .npz file, `digits` or `textures`.",
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
        axes_option,
        click.option(
            "--labels-key",
            help="Variable that holds the label map; `TRAIN,TEST` for a fixed split.",
        ),
        click.option(
            "--label-column", help="Column, or variable, of the labels of a table of spectra."
        ),
        click.option(
            "--group-column",
            help="Column, or variable, of its groups, such as fields: none lies on two sides.",
        ),
        class_field_option,
        labels_crs_option,
        unlabelled_option,
        zero_option,
        class_names_option,
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

    return together(
        *(
            click.option(f"--{name.replace('_', '-')}", multiple=True, help=text)
            for name, text in _MOVED.items()
        )
    )(gathered)


_SPLIT_OPTIONS = together(
    click.option(
        "--split",
        type=click.Choice(["auto", "fixed", "random", "blocks", "folds", "polygons", "groups"]),
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


preparation_options = together(
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
