"""Outputs of a model as values: of the rows of a table, and of a scene, block by block."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hytas.data import Rows, valid_mask
from hytas.data.data_array import cube_of, is_data_array
from hytas.deploy.model import DeployedModel
from hytas.deploy.rasters import RasterBand
from hytas.deploy.scene import TILE_PIXELS, probability_rows
from hytas.deploy.tiles import read_tile, tile_probabilities
from hytas.errors import InputError
from hytas.types import Array, Floats


def output_bands(model: DeployedModel) -> list[RasterBand]:
    """Return name and unit of each output of a model."""
    units: Sequence[str] = (model.card.targets or {}).get("units", ())
    names = model.card.class_names
    return [RasterBand(*each) for each in zip(names, units or ("",) * len(names), strict=True)]


def half_widths(model: DeployedModel, level: float) -> Floats:
    """Return the half width (T,) of the interval of each target."""
    widths = (model.card.targets or {}).get("intervals", {})
    known = {float(each): row for each, row in widths.items() if None not in row}
    if level not in known:
        rule = f"must be one of {', '.join(f'{each:g}' for each in known) or 'none'}"
        raise InputError("interval", f"{level:g}", f"{rule}, the levels of {model.path}")
    return np.array(known[level], np.float64)


def row_values(
    model: DeployedModel, spectra: Array, nodata: float | None
) -> npt.NDArray[np.float32]:
    """Return the outputs (N, C) for spectra (N, bands); NaN where a spectrum has no data."""
    card = model.card
    mark = card.nodata if nodata is None else nodata
    valid = valid_mask(spectra[:, None], mark, card.kept_bands).ravel()
    outputs = np.full((len(spectra), len(card.class_ids)), np.nan, np.float32)
    if valid.any():
        outputs[valid] = model.predict_patches(spectra[valid][:, None, None])
    return outputs


def predict_scene(
    model: DeployedModel,
    cube: Any,
    *,
    nodata: float | None = None,
    wavelengths: Floats | None = None,
) -> Any:
    """Return the outputs (H, W, C) of every pixel of a cube; NaN without data.

    Args:
        cube: (H, W, bands), or an `xarray.DataArray`, whose no-data value and wavelengths are
            taken; the outputs are then a `DataArray` with a dimension "target".
        nodata: the no-data value; None uses the model's, if it has one.
        wavelengths: (bands) band centres of the cube in nm, to compare with the model's.

    Raises:
        InputError: the band count or the wavelengths differ, or the scene is smaller than a patch.
    """
    given = cube_of(cube) if is_data_array(cube) else None
    if given is not None:
        nodata = given.nodata if nodata is None else nodata
        wavelengths = given.wavelengths if wavelengths is None else wavelengths
    rows: Rows = cube if given is None else given
    model.check_scene(rows.shape[2], wavelengths, size=(rows.shape[0], rows.shape[1]))
    values = np.concatenate([block for _, block in scene_values(model, rows, nodata)])
    if given is None:
        return values
    units = {"units": ", ".join(one.unit for one in output_bands(model))}
    names = np.array(model.card.class_names)
    return given.of_pixels(values, "values", units, names).rename({"class": "target"})


def probability_blocks(
    model: DeployedModel, cube: Rows, nodata: float | None, smooth: str | None = None
) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """Yield number and probabilities (1, W, C) of each row of a scene; NaN without data."""
    rows = probability_rows(model, cube, nodata=nodata, smooth=smooth)
    for top, chances in enumerate(rows):
        chances[~chances.any(axis=1)] = np.nan
        yield top, chances[None]


def scene_values(
    model: DeployedModel, cube: Rows, nodata: float | None, first_row: int = 0
) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """Yield the first row and the outputs (h, W, C) of blocks of a scene; NaN without data."""
    height, width = cube.shape[:2]
    rows = max(1, TILE_PIXELS // width)
    for top in range(first_row, height, rows):
        tile = read_tile(cube, top, min(top + rows, height), model.card.margin)
        outputs, valid, _ = tile_probabilities(model, tile, top, nodata)
        outputs[~valid] = np.nan
        yield top, outputs
