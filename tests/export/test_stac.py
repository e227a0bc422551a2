"""The catalogue item, checked by the schema of its extension and by STAC's own."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from small_model import Exported

from hytas.export import export_formats

SCHEMAS = Path(__file__).parent / "schemas"


def validator() -> Any:
    """Return a validator by the extension's schema that reads no network."""
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    registry = referencing.Registry()
    for path in SCHEMAS.glob("*.json"):
        name, _, version = path.stem.rpartition("-")
        address = f"https://stac-extensions.github.io/{name}/{version}/schema.json"
        contents = json.loads(path.read_text())
        resource = referencing.Resource.from_contents(contents, referencing.jsonschema.DRAFT7)
        registry = registry.with_resource(address, resource)
    schema = json.loads((SCHEMAS / "mlm-v1.4.0.json").read_text())
    return jsonschema.Draft7Validator(schema, registry=registry)


@pytest.fixture(scope="module")
def item(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("stac")
    (folder / "model.onnx").write_bytes(exported.onnx.read_bytes())
    (folder / "scene.w8.onnx").write_bytes(b"scene")
    (folder / "notes.txt").write_text("not a model")
    files = export_formats(exported.model, folder, exported.card, ["stac"])
    found: dict[str, Any] = json.loads(files["stac"].read_text())
    return found


def test_the_item_is_valid(item: dict[str, Any]) -> None:
    check = validator()
    assert [error.message for error in check.iter_errors(item)] == []
    pystac = pytest.importorskip("pystac")
    from pystac.validation.stac_validator import JsonSchemaSTACValidator

    JsonSchemaSTACValidator().validate_core(item, pystac.STACObjectType.ITEM, "1.1.0")
    del item["properties"]["mlm:input"][0]["input"]["shape"]
    assert list(check.iter_errors(item)) != []  # or the schema would check nothing
    item["properties"]["mlm:input"][0]["input"]["shape"] = [-1, 5, 5, 24]


def test_the_item_says_what_the_model_takes_and_gives(
    item: dict[str, Any], exported: Exported
) -> None:
    properties, card = item["properties"], exported.card
    assert properties["eo:bands"][3] == {
        "name": "band 4",
        "center_wavelength": round(card.wavelengths[3] / 1000, 7),
    }
    (taken,) = properties["mlm:input"]
    assert taken["input"]["shape"] == [-1, 5, 5, 24]
    assert taken["input"]["data_type"] == "uint16"
    assert taken["value_scaling"] is None
    assert properties["mlm:hyperparameters"]["scaling"]["offset"] == card.preprocessing["offset"]
    (given,) = properties["mlm:output"]
    assert [one["value"] for one in given["classification:classes"]] == [3, 4, 9, 200]
    assert given["classification:classes"][0]["description"] == "grass"
    assert sorted(item["assets"]) == ["model.onnx", "scene.w8.onnx"]
    asset = item["assets"]["model.onnx"]
    assert "mlm:model" in asset["roles"]
    assert asset["file:checksum"] == "1220" + hashlib.sha256(exported.onnx.read_bytes()).hexdigest()
    assert asset["file:size"] == exported.onnx.stat().st_size
