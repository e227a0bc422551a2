"""A STAC item that describes an exported model: the Machine Learning Model extension (MLM) 1.4.

https://github.com/stac-extensions/mlm
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from hytas.errors import InputError
from hytas.export.evidence import Evidence
from hytas.files import write_text
from hytas.model_card import ModelCard
from hytas.models import SensorModel

EXTENSIONS = {
    name: f"https://stac-extensions.github.io/{name}/v{version}/schema.json"
    for name, version in {"mlm": "1.4.0", "eo": "1.1.0", "file": "2.1.0"}.items()
}
# Suffix of a model file -> its artifact type, as the extension recommends, and its media type.
ARTIFACTS = {
    ".onnx": ("onnx", "application/octet-stream; application=onnx"),
    ".pt": ("torch.jit.save", "application/octet-stream; application=pytorch"),
    ".pt2": ("torch.export.save", "application/octet-stream; application=pytorch"),
    ".c": ("c", "text/x-c"),
}
_OF_PATCHES = re.compile(r"model(\.(fp16|int8|w8))?\.(onnx|pt|pt2)")
_SHA_256 = "1220"
"""Begin of a multihash: the number of SHA-256, and its 32 bytes."""
_ALWAYS = ("1900-01-01T00:00:00Z", "9999-12-31T23:59:59Z")


def export_stac(model: SensorModel, path: str | Path, card: ModelCard) -> Path:
    """Write a STAC item about the exported files next to `path`."""
    item = stac_item(model, Path(path).parent, card)
    write_text(path, json.dumps(item, indent=2, ensure_ascii=False) + "\n")
    return Path(path)


def stac_item(model: SensorModel, folder: Path, card: ModelCard) -> dict[str, Any]:
    """Return the item as JSON.

    A card has no place and no time, so the item has no geometry and holds for all times. The files
    scale raw values themselves: `value_scaling` is null, and the scaling is a hyperparameter.
    """
    assets = _assets(folder)
    if not any("mlm:artifact_type" in asset for asset in assets.values()):
        raise InputError("formats", "stac", f"must find a model in {folder}", "export onnx as well")
    space = card.architecture.get("space", "hytas")
    task = "classification" if card.of_images else "semantic-segmentation"
    properties = {
        "datetime": None,
        "start_datetime": _ALWAYS[0],
        "end_datetime": _ALWAYS[1],
        "description": f"A classifier of pixels by hytas {card.version}",
        "eo:bands": _bands(card),
        "mlm:name": f"hytas model for {len(card.class_ids)} classes from {card.bands} bands",
        "mlm:architecture": space,
        "mlm:tasks": [task],
        "mlm:framework": "ONNX",
        "mlm:total_parameters": sum(each.numel() for each in model.network.parameters()),
        "mlm:pretrained": bool(card.learnt_from),
        "mlm:accelerator": None,
        "mlm:input": [_input(card)],
        "mlm:output": [_output(card, task)],
        "mlm:hyperparameters": {
            "architecture": dict(card.architecture),
            "scaling": dict(card.preprocessing),
            "temperature": card.temperature,
        },
    }
    return {
        "type": "Feature",
        "stac_version": "1.1.0",
        "stac_extensions": list(EXTENSIONS.values()),
        "id": f"hytas-{assets[min(assets)]['file:checksum'][len(_SHA_256) :][:16]}",
        "geometry": None,
        "properties": properties,
        "links": [],
        "assets": assets,
    }


def _bands(card: ModelCard) -> list[dict[str, Any]]:
    bands: list[dict[str, Any]] = [{"name": _band(place)} for place in range(card.bands)]
    for key, values in (
        ("center_wavelength", card.wavelengths),
        ("full_width_half_max", card.fwhm),
    ):
        for band, value in zip(bands, values or (), strict=False):
            if value > 0:
                band[key] = round(value / 1000, 7)
    return bands


def _band(place: int) -> str:
    return f"band {place + 1}"


def _input(card: ModelCard) -> dict[str, Any]:
    side = card.patch_size
    return {
        "name": "patches",
        "description": "Raw values around each pixel, mirrored at the border of the scene. "
        "The model scales them itself.",
        "bands": [_band(place) for place in range(card.bands)],
        "input": {
            "shape": [-1, side, side, card.bands],
            "dim_order": ["batch", "height", "width", "bands"],
            "data_type": card.dtype,
        },
        "value_scaling": None,
    }


def _output(card: ModelCard, task: str) -> dict[str, Any]:
    classes = [
        {
            "value": number,
            # Letters, digits, - and _, as the extension of classes wants it.
            "name": re.sub(r"[^0-9A-Za-z-]+", "_", name).strip("_") or f"class_{number}",
            "description": name,
            "color_hint": "".join(f"{level:02X}" for level in colour),
        }
        for number, name, colour in zip(card.class_ids, card.class_names, card.palette, strict=True)
    ]
    return {
        "name": "probabilities",
        "tasks": [task],
        "result": {
            "shape": [-1, len(card.class_ids)],
            "dim_order": ["batch", "class"],
            "data_type": "float32",
        },
        "classification:classes": classes,
    }


def _assets(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the model files in a folder. Those that take patches have the role of a model."""
    assets = {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in ARTIFACTS or path.stem.split(".")[0] not in ("model", "scene"):
            continue
        content = path.read_bytes()
        artifact, media = ARTIFACTS[path.suffix]
        asset: dict[str, Any] = {
            "href": f"./{path.name}",
            "type": media,
            "roles": ["mlm:weights"],
            "file:size": len(content),
            "file:checksum": _SHA_256 + hashlib.sha256(content).hexdigest(),
        }
        if _OF_PATCHES.fullmatch(path.name):
            asset |= {"roles": ["mlm:model", "mlm:weights"], "mlm:artifact_type": artifact}
        assets[path.name] = asset
    return assets


def judge_stac(name: str, path: Path, evidence: Evidence) -> dict[str, Any]:
    """Return the number of files that an item describes; there is nothing to compare with torch."""
    return {"assets": len(json.loads(path.read_text("utf-8"))["assets"])}
