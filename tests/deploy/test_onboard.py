"""The C++ onboard runner against `hytas classify`: the same bytes, in little memory."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onboard_program import SOURCE, Run
from small_model import Exported
from test_rasters import holed, write_cube

from commands import run_here
from hytas.data.interpret.wavelengths import items_of, wavelength_facts
from hytas.data.read.envi import fields_of
from hytas.export.onnx_file import graphs_of, seal

FIELDS = (
    *("samples", "lines", "bands", "header offset", "file type", "data type", "interleave"),
    *("byte order", "data ignore value", "classes", "class names", "class lookup"),
)


def described(header: Path) -> dict[str, object]:
    """What a header says of its data; GDAL tells the place in words of its own."""
    fields = fields_of(header)
    texts = {name: fields.get(name, "") for name in FIELDS}
    return {name: items_of(text) if text.startswith("{") else text for name, text in texts.items()}


@pytest.mark.parametrize(
    ("dtype", "interleave", "order"),
    [
        ("uint16", "bil", "<"),
        ("uint16", "bsq", ">"),
        ("float32", "bip", ">"),
        ("float32", "bil", "<"),
        ("float64", "bsq", "<"),
    ],
)
def test_the_same_map_to_the_byte(
    onboard: Run,
    models: dict[str, Exported],
    tmp_path: Path,
    dtype: str,
    interleave: str,
    order: str,
) -> None:
    exported = models[dtype]
    cube = holed(exported.scene.cube)
    if dtype == "float32":
        cube[8, 8], cube[9, 9, 3] = np.nan, np.inf
    if dtype == "float64":  # what float32 cannot hold is no data
        cube[8, 8], cube[9, 9, 3] = -1e40, 1e300
    scene = write_cube(tmp_path / "scene", cube, interleave, order)
    with scene.open("a") as header:
        header.write("; a remark = 1\n")
        header.write('coordinate  system string = {LOCAL_CS["a",\n UNIT["m",1]]}\n')
    model = exported.files["onnx-scene"]
    there = run_here("classify", model, scene, "--out", tmp_path / "there.hdr", "--threads", 1)
    assert there.returncode == 0, there.stderr
    here = onboard(model, scene, tmp_path / "here.hdr")
    assert here.returncode == 0, here.stderr
    found = (tmp_path / "here.img").read_bytes()
    assert found == (tmp_path / "there.img").read_bytes()
    labels = np.frombuffer(found, np.uint8).reshape(17, 23)
    assert len(np.unique(labels)) >= 4
    assert (labels == 0).sum() == (4 if dtype == "uint16" else 5)
    assert described(tmp_path / "here.hdr") == described(tmp_path / "there.hdr")


def test_smoothed_lines_are_those_of_classify(
    onboard: Run, models: dict[str, Exported], tmp_path: Path
) -> None:
    """Classes and probabilities; some pixels, a line and a band of another hold no data."""
    exported = models["aware"]
    cube = np.concatenate([exported.scene.cube] * 2)
    cube[2, 3] = cube[9, 5:] = cube[20] = 9999
    cube[5, 7, 3] = 9999
    for name, part in (("whole", cube), ("low", cube[:6])):
        scene = write_cube(tmp_path / name, part, "bil", "<")
        found = {}
        for smooth in ("guided", "none"):
            model, more = exported.files["onnx-scene"], ("--smooth", smooth, "--confidence")
            there, here = (tmp_path / f"{side}-{smooth}.hdr" for side in ("there", "here"))
            sure = {path: path.with_name(f"sure-{path.name}") for path in (there, here)}
            done = run_here("classify", model, scene, "--out", there, *more, sure[there])
            assert done.returncode == 0, done.stderr
            done = onboard(model, scene, here, *more, sure[here])
            assert done.returncode == 0, done.stderr
            images = [path.with_suffix(".img").read_bytes() for path in (here, there)]
            assert images[0] == images[1]
            assert described(sure[here]) == described(sure[there])
            chances = [np.fromfile(sure[path].with_suffix(".img"), "<f4") for path in sure]
            assert len(chances[0]) == part[..., 0].size
            assert np.abs(chances[0] - chances[1]).max() < 1e-5
            found[smooth] = images[0]
        assert found["guided"] != found["none"]
        assert found["guided"].count(0) == found["none"].count(0)


def test_what_it_refuses(
    onboard: Run, models: dict[str, Exported], exported: Exported, tmp_path: Path
) -> None:
    model = models["uint16"].files["onnx-scene"]
    scene = write_cube(tmp_path / "scene", models["uint16"].scene.cube, "bil", "<")
    few = write_cube(tmp_path / "few", models["uint16"].scene.cube[..., :9], "bil", "<")
    real = write_cube(tmp_path / "real", models["float32"].scene.cube, "bil", "<")
    small = write_cube(tmp_path / "small", models["uint16"].scene.cube[:3], "bil", "<")
    short = write_cube(tmp_path / "short", models["uint16"].scene.cube, "bsq", "<")
    data = short.with_suffix(".img")
    data.write_bytes(data.read_bytes()[:-1])
    long = write_cube(tmp_path / "long", models["uint16"].scene.cube, "bsq", "<")
    with long.with_suffix(".img").open("ab") as file:
        file.write(b"12345")
    headers = {}
    shifted = ", ".join(f"{value + 500:.1f}" for value in np.linspace(400, 1000, 24))
    for name, change in (
        ("order", ("byte order = 0", "byte order = 7")),
        ("ignore", ("data ignore value = 9999", "data ignore value = none")),
        ("huge", ("lines = 17", "lines = 2000000000")),
        ("negative", ("bands = 24", "bands = -24")),
        ("shifted", ("byte order = 0", f"byte order = 0\nwavelength = {{{shifted}}}")),
    ):
        headers[name] = write_cube(tmp_path / name, models["uint16"].scene.cube, "bil", "<")
        text = headers[name].read_text()
        assert change[0] in text
        headers[name].write_text(text.replace(*change))
    out = tmp_path / "map.hdr"
    for arguments, message in (
        ((exported.onnx, scene, out), "is a patch graph; this program takes the scene graph"),
        ((model, few, out), "cube: has 9 bands and the model takes 24"),
        ((model, real, out), "its values are float32 and the model takes uint16"),
        ((model, small, out), "3 x 23 pixels are less than the model's patch of 5"),
        (
            (model, short, out),
            f"is truncated or does not belong to {short}: it holds 18767 bytes, the header needs",
        ),
        (
            (model, long, out),
            "it holds 18773 bytes, the header needs 18768; correct the header, or",
        ),
        ((model, headers["shifted"], out), "nm: at most one band spacing (26.1 nm) apart"),
        ((model, scene, scene), "scene.hdr is also a file of the cube: an output must be"),
        ((model, headers["order"], out), "'byte order' is 7, must be 0 (little endian) or 1"),
        ((model, headers["ignore"], out), "'data ignore value' is none; a number is needed"),
        ((model, headers["huge"], out), "is truncated"),
        ((model, headers["negative"], out), "'bands' is -24, must be an integer of at least 1"),
        ((model, tmp_path / "none.hdr", out), "no such file"),
        ((scene, scene, out), "is not an ONNX file of `hytas export`, or is damaged: it has no"),
        ((model, scene, tmp_path / "absent" / "map.hdr"), "map: cannot write"),
        ((model, scene), "usage: hytas-onboard"),
        ((model, scene, out, "--threads", "0"), "--threads: 0 must be 1 to 1024"),
        ((model, scene, out, "--threads", "100000000"), "--threads: 100000000 must be 1 to 1024"),
        ((model, scene, out, "--verbose"), "no option --verbose"),
        ((model, scene, out, "--smooth", "box"), "--smooth: box must be guided or none"),
        ((model, scene, out, "--confidence", "c.tif"), "--confidence: c.tif must end in .hdr"),
        ((model, scene, out, "--confidence", out), "map.hdr is also the map: an output must be"),
    ):
        done = onboard(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert done.stderr.startswith("error: "), done.stderr
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("map*"))


def with_properties(exported: Exported, path: Path, **properties: object) -> Path:
    """The scene graph with other metadata."""
    graph = onnx.load(exported.files["onnx-scene"])
    for entry in graph.metadata_props:
        name = entry.key.removeprefix("hytas.")
        entry.value = json.dumps(properties[name]) if name in properties else entry.value
    if isinstance(ids := properties.get("class_ids"), list):
        known = np.array(exported.card.class_ids, np.int32).tobytes()
        weights = (one for part in graphs_of(graph.graph) for one in part.initializer)
        (given,) = (one for one in weights if one.raw_data == known)
        given.raw_data = np.array(ids, np.int32).tobytes()
    seal(graph)
    onnx.save(graph, path)
    return path


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        ([3, 4, 9, 70000], ["grass", "gravel", "roof", "water"]),
        ([3, 4, 9, 300], ["a}b", "{c, d}", "水田 \U0001f33e", "e=f; g"]),
        ([3, 4, 9, 200], ["h\nlines = 3", "\x00\x1f\x7f\x85", "\udc00i", "\u2028j"]),
        ([-1, 4, 9, 200], ["grass", "gravel", "roof", "water"]),
    ],
)
def test_every_card_gives_the_header_that_classify_writes(
    onboard: Run, models: dict[str, Exported], tmp_path: Path, ids: list[int], names: list[str]
) -> None:
    model = with_properties(
        models["uint16"], tmp_path / "model.onnx", class_ids=ids, class_names=names
    )
    scene = write_cube(tmp_path / "scene", models["uint16"].scene.cube, "bil", "<")
    there = run_here("classify", model, scene, "--out", tmp_path / "there.hdr", "--threads", 1)
    assert there.returncode == 0, there.stderr
    here = onboard(model, scene, tmp_path / "here.hdr")
    assert here.returncode == 0, here.stderr
    images = [(tmp_path / f"{name}.img").read_bytes() for name in ("here", "there")]
    assert images[0] == images[1]
    assert described(tmp_path / "here.hdr") == described(tmp_path / "there.hdr")
    fields = fields_of(tmp_path / "here.hdr")
    assert fields["lines"] == "17"  # what a name said after a line's end is part of that name
    if min(ids) >= 0 and max(ids) < 4096:
        assert len(items_of(fields["class names"])) == int(fields["classes"]) == max(ids) + 1


LIMITS = (SOURCE / "limits.hpp").read_text(encoding="utf-8")
UNITS = {name: float(factor) for name, factor in re.findall(r'\{"(\S+)", ([\d.e]+)\}', LIMITS)}
NM = np.linspace(400, 1000, 24)
LISTS = [  # wavelengths as numbers in a header, their unit, and the way that they are written
    *((NM / factor, unit) for unit, factor in UNITS.items()),
    *((NM / 1e3, unit) for unit in (None, "Unknown", "nm", "[Nanometers]")),
    *((NM / 1e9, unit) for unit in (None, "Meters", "1")),
    *((NM, unit) for unit in (None, "Micrometers", " NANOMETERS ", "Ångström", "foot", "Index")),
    *((1e7 / NM, unit) for unit in ("Wavenumber", "1/cm", "cm-1")),
    (NM, "Angstrom"),
    (NM[::-1], "nm"),
    (np.arange(1, 25), None),
    (np.full(24, 500.0), "nm"),
    (np.full(24, -1.0), "nm"),
    (NM * 30, None),
]
UNITED = [f"{value:g} {unit}" for value, unit in zip(NM, ["nm"] * 24, strict=True)]


def test_units_are_read_as_in_python(
    onboard: Run, models: dict[str, Exported], tmp_path: Path
) -> None:
    """A header that Python reads as other wavelengths than the model's names those of a band."""
    scene = write_cube(tmp_path / "s", models["uint16"].scene.cube, "bil", "<")
    text, model = scene.read_text(), models["uint16"].files["onnx-scene"]
    tables = [([repr(float(value)) for value in values], unit) for values, unit in LISTS]
    tables += [(UNITED, None), (UNITED, "um"), ([*UNITED[:-1], "1 um"], None), (UNITED[:2], None)]
    read = 0
    for values, unit in tables:
        line = "" if unit is None else f"wavelength units = {unit}\n"
        scene.write_text(f"{text}{line}wavelength = {{{', '.join(values)}}}\n")
        done = onboard(model, scene, tmp_path / "map.hdr")
        facts, notes = wavelength_facts(24, values, None if unit is None else unit.strip())
        found = facts.wavelengths
        if found is None:
            assert done.returncode == 0, (unit, done.stderr)
            assert "are not used" in done.stderr, (unit, done.stderr)
        elif np.abs(found - NM).max() < 26:
            read += 1
            assert done.returncode == 0, (unit, done.stderr)
            assert ("are read as" in done.stderr) == any(
                "are read as" in str(note) for note in notes
            )
        else:
            match = re.search(r"band (\d+) lies at ([\d.]+) nm", done.stderr)
            assert match is not None, (unit, done.stderr)
            assert float(match[2]) == pytest.approx(found[int(match[1]) - 1], abs=0.06)
    assert read > 30
