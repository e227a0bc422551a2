"""Polygons and points as labels: every format gives the same map, and what is wrong is named."""

import gzip
import json
import socket
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from products_made import emit
from rasterio import warp
from vectors_made import (
    FIELDS,
    HEIGHT,
    LEFT,
    SIDE,
    TOP,
    WIDTH,
    box,
    fields_map,
    geojson,
    polygon,
    roi,
    scene,
    utm,
    vector_file,
)

from hytas.cli.inspect_values import describe_shapes
from hytas.data import Grid, labels_on_grid, load_scene, make_split
from hytas.data.labels.burn import Burner, check_rings
from hytas.data.read import untrusted
from hytas.errors import InputError
from refusals import refuses


@pytest.mark.parametrize("kind", ["geojson", "gpkg", "gpkg-z", "shp", "fgb"])
def test_every_format_gives_the_same_map(tmp_path: Path, kind: str) -> None:
    header = scene(tmp_path)
    if kind == "geojson":
        path = geojson(tmp_path / "fields.geojson", FIELDS)
    else:
        suffix, _, form = kind.partition("-")
        path = vector_file(tmp_path / f"fields.{suffix}", FIELDS, z=form == "z")
    loaded = load_scene(header, path, class_field="crop")
    np.testing.assert_array_equal(loaded.labels, fields_map())
    assert loaded.class_names == ("maize", "wheat")
    assert loaded.class_colours == ((0, 170, 0), (255, 204, 0))
    assert loaded.sources == (str(tmp_path / "scene.img"), str(path))
    expected = np.zeros_like(fields_map())
    for number, (row, column) in enumerate(((3, 2), (3, 20), (15, 2), (15, 20)), start=1):
        expected[row : row + 6, column : column + 10] = number
    expected[fields_map() == 0] = 0
    np.testing.assert_array_equal(loaded.polygons, expected)
    # The only field that is no colour needs no name.
    assert load_scene(header, path).fingerprint == loaded.fingerprint


def test_only_the_fields_that_are_used_are_read(tmp_path: Path) -> None:
    header = scene(tmp_path)
    features = [
        (geometry, {**fields, "note": "x" * 2**16, "Class": number % 2 + 1})
        for number, (geometry, fields) in enumerate(FIELDS * 700)
    ]
    path = vector_file(tmp_path / "f.gpkg", features)
    assert load_scene(header, path).class_names == ("class 1", "class 2")
    assert load_scene(header, path, class_field="crop").class_names == ("maize", "wheat")


@pytest.mark.parametrize("suffix", ["gpkg", "shp"])
def test_spectra_in_the_table_of_points_are_fields(tmp_path: Path, suffix: str) -> None:
    bands = {f"b{band}": band for band in range(200)}
    points = [
        ({"type": "Point", "coordinates": place}, {**bands, "crop": "ab"[number % 2]})
        for number, place in enumerate(utm([(2.5, 2.5), (3.5, 2.5), (4.5, 2.5)]))
    ]
    path = vector_file(tmp_path / f"f.{suffix}", points)
    error = refused(scene(tmp_path), path)
    assert error.rule == "holds several fields: b0, b1, b2, b3, b4, b5, b6, b7, b8, b9 and 191 more"
    described = describe_shapes(path)
    assert described is not None
    assert len(described["fields"]) == 201
    assert load_scene(tmp_path / "scene.img", path, class_field="crop").class_names == ("a", "b")


def test_numbers_are_ids(tmp_path: Path) -> None:
    header = scene(tmp_path)
    features = [
        (g, {"id": n, "class": n}) for (g, _), n in zip(FIELDS, (7, 3, 0, 255), strict=True)
    ]
    path = geojson(tmp_path / "fields.json", features)
    loaded = load_scene(header, path, unlabelled=255)
    assert loaded.class_ids == (3, 7)
    texts = [(shape, {"Class": str(fields["class"])}) for shape, fields in features]
    marked = [(shape, {"class": each["class"] or -1}) for shape, each in features]
    minus = geojson(tmp_path / "minus.json", marked)
    assert load_scene(header, minus, unlabelled=-1).class_ids == (3, 7, 255)
    assert refused(header, minus).hint == "if it marks shapes without a class, set `unlabelled`"
    as_texts = load_scene(header, geojson(tmp_path / "texts.json", texts), class_field="class")
    assert as_texts.class_ids == (3, 7, 255)
    floats = [(shape, {"Class": f"{each['class']}.0"}) for shape, each in features]
    assert load_scene(header, geojson(tmp_path / "texts.json", floats)).class_ids == (3, 7, 255)
    texts = [
        (shape, {"Class": text}) for (shape, _), text in zip(features, ["01", *"123"], strict=True)
    ]
    as_names = load_scene(header, geojson(tmp_path / "texts.json", texts), class_field="class")
    assert as_names.class_names == ("01", "1", "2", "3")
    one_more = load_scene(header, path, zero_is_a_class=True)
    assert one_more.class_ids == (1, 4, 8, 256)
    assert one_more.class_names == ("label 0", "label 3", "label 7", "label 255")


def test_points(tmp_path: Path) -> None:
    header = scene(tmp_path)
    places = {(0, 0): "a", (39, 29): "b", (4, 7): "a", (5, 7): "b"}
    expected = np.zeros((HEIGHT, WIDTH), np.int32)
    for (column, row), name in places.items():
        expected[row, column] = "ab".index(name) + 1
    path = tmp_path / "points.csv"
    rows = [f"{row};{column};{name}" for (column, row), name in places.items()]
    path.write_text("Row;Column;crop\n" + "\n".join(rows) + "\n")
    np.testing.assert_array_equal(load_scene(header, path).labels, expected)
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(load_scene(header, packed).labels, expected)
    assert "positions-from-1" not in load_scene(header, path).codes
    rows = [f"{row + 1};{column + 1};{name}" for (column, row), name in places.items()]
    path.write_text("Row;Column;crop\n" + "\n".join(rows) + "\n")
    assert "positions-from-1" in load_scene(header, path).codes
    rows = [
        f"{name},{LEFT + SIDE * column + 9.9},{TOP - SIDE * row - 0.1}"
        for (column, row), name in places.items()
    ]
    path.write_text("crop,x,y\n" + "\n".join(rows))
    np.testing.assert_array_equal(load_scene(header, path).labels, expected)
    commas = "crop;x;y\n" + "\n".join(rows).replace(",", ";").replace(".", ",")
    path.write_text(commas)
    loaded = load_scene(header, path)
    np.testing.assert_array_equal(loaded.labels, expected)
    points = [
        ({"type": "MultiPoint", "coordinates": utm([(c + 0.5, r + 0.5)])[:1]}, {"crop": name})
        for (c, r), name in places.items()
    ]
    loaded = load_scene(header, vector_file(tmp_path / "p.gpkg", points))
    np.testing.assert_array_equal(loaded.labels, expected)
    assert set(np.unique(loaded.polygons)) == {0, 1, 2, 3, 4}


def test_points_elsewhere(tmp_path: Path) -> None:
    header, path = scene(tmp_path), tmp_path / "points.csv"
    x, y = warp.transform("EPSG:32632", "EPSG:4326", [LEFT + 5, LEFT + 35], [TOP - 5, TOP - 35])
    places = [[f"{value:.7f}" for value in each] for each in zip(x, y, strict=True)]

    for names in ("lat,lon", "x,y"):
        rows = [",".join([*place, crop]) for place, crop in zip(places, "ab", strict=True)]
        path.write_text("\n".join([f"{names},crop", *rows]))
        error = refused(header, path)
        assert error.rule.startswith("no label lies in the scene: labels span")
        assert "`labels_crs`" in error.hint
    load_scene(header, path, labels_crs="EPSG:4326")
    path.write_text("lng,lat,crop\n" + path.read_text().partition("\n")[2])
    load_scene(header, path)
    path.write_text(path.read_text().replace("b", "Rüben"), encoding="cp1252")
    error = refused(header, path)
    assert (error.rule, error.hint) == ("cannot be read: no text in UTF-8", "save it as CSV UTF-8")


@pytest.mark.parametrize(("name", "delimiter"), [("WKT", ","), ("wkt_geom", "\t"), ("geom", ";")])
def test_well_known_text_in_a_table(tmp_path: Path, name: str, delimiter: str) -> None:
    header, path = scene(tmp_path), tmp_path / "fields.csv"
    rows = [[shapely.geometry.shape(place).wkt, fields["crop"]] for place, fields in FIELDS]
    lines = [delimiter.join(f'"{cell}"' for cell in row) for row in [[name, "crop"], *rows]]
    path.write_text("\n".join(lines))
    np.testing.assert_array_equal(load_scene(header, path).labels, fields_map())
    path.write_text("\n".join([*lines[:2], delimiter.join(('"POINT (1"', "oats"))]))
    assert refused(header, path).rule.startswith("row 2 holds POINT (1: must be")
    path.write_text("row,column,geometry,crop\n1,1,POINT (0 0),a\n2,2,POINT (0 0),b\n")
    assert load_scene(header, path).class_names == ("a", "b")
    path.write_text("row,column,geom\n1,1,dune\n2,2,cliff\n")  # of geomorphology
    assert load_scene(header, path, class_field="geom").class_names == ("cliff", "dune")
    long = shapely.Point(LEFT + 50, TOP - 50).buffer(40, 2**11).wkt
    assert len(long) > 2**17
    path.write_text(f'WKT,crop\n"{long}",a\n"{rows[1][0]}",b\n')
    assert load_scene(header, path).class_names == ("a", "b")


def test_classes_between_the_centres_are_named_if_one_is_left(tmp_path: Path) -> None:
    header = scene(tmp_path)
    tiny = polygon([[LEFT + 1, TOP - 1], [LEFT + 3, TOP - 1], [LEFT + 3, TOP - 3]])
    path = geojson(tmp_path / "f.geojson", [(tiny, {"crop": "a"}), (FIELDS[0][0], {"crop": "b"})])
    error = refused(header, path)
    assert error.rule == "holds labels of b: 2 classes are needed"
    assert "no pixel got a" in error.hint


def test_envi_regions(tmp_path: Path) -> None:
    header = scene(tmp_path)
    regions = [
        ("soil", "255, 0, 0", [(0, 0), (1, 0), (39, 29)]),
        ("water", "0, 0, 255", [(5, 6)]),
    ]
    loaded = load_scene(header, roi(tmp_path / "regions.txt", regions))
    assert loaded.class_names == ("soil", "water")
    assert loaded.class_colours == ((255, 0, 0), (0, 0, 255))
    assert loaded.labels[0, 0] == loaded.labels[0, 1] == loaded.labels[29, 39] == 1
    assert loaded.labels[6, 5] == 2
    assert (loaded.labels > 0).sum() == 4


def degrees(geometry: dict[str, Any]) -> dict[str, Any]:
    """A polygon in degrees on WGS 84."""
    rings = []
    for ring in geometry["coordinates"]:
        x, y = warp.transform("EPSG:32632", "EPSG:4326", *np.array(ring).T)
        rings.append([list(place) for place in zip(x, y, strict=True)])
    return polygon(*rings)


def test_shapes_in_degrees(tmp_path: Path) -> None:
    header = scene(tmp_path)
    features = [(degrees(geometry), properties) for geometry, properties in FIELDS]
    path = geojson(tmp_path / "fields.geojson", features, None)
    loaded = load_scene(header, path, class_field="crop")
    np.testing.assert_array_equal(loaded.labels, fields_map())


def test_kml(tmp_path: Path) -> None:
    header = scene(tmp_path)
    features = [
        (degrees(geometry), {"Name": fields["crop"], "crop": fields["crop"]})
        for geometry, fields in FIELDS
    ]
    path = vector_file(tmp_path / "fields.kml", features, epsg=4326)
    loaded = load_scene(header, path, class_field="crop")
    np.testing.assert_array_equal(loaded.labels, fields_map())
    np.testing.assert_array_equal(load_scene(header, path, class_field="Name").labels, fields_map())


def test_shapes_on_a_scene_in_sensor_geometry(tmp_path: Path) -> None:
    made = emit(tmp_path / "emit.nc", 30, 20)
    ring = [[20.0031, 39.9961], [20.0122, 39.9942], [20.0093, 39.9803], [20.0031, 39.9961]]
    other = [[20.0131, 39.99], [20.0191, 39.99], [20.0191, 39.98], [20.0131, 39.98]]
    path = geojson(
        tmp_path / "fields.geojson",
        [(polygon(ring), {"class": "a"}), (polygon(other), {"class": "b"})],
        None,
    )
    labels = load_scene(tmp_path / "emit.nc", path).labels
    for number, corners in ((1, ring), (2, other)):
        expected = [
            plain_inside(corners, x, y)
            for x, y in zip(made["location/lon"].ravel(), made["location/lat"].ravel(), strict=True)
        ]
        np.testing.assert_array_equal((labels == number).ravel(), expected)
    points = tmp_path / "points.csv"
    points.write_text("lon,lat,class\n20.0015,39.9993,a\n20.0053,39.9884,b\n21,41,a\n")
    labels = load_scene(tmp_path / "emit.nc", points).labels
    distance = np.hypot(made["location/lon"] - 20.0053, made["location/lat"] - 39.9884)
    assert labels.ravel()[distance.argmin()] == 2
    assert (labels > 0).sum() == 2


def plain_inside(ring: list[list[float]], x: float, y: float) -> bool:
    """Whether a ray to the right crosses the ring an odd number of times."""
    odd = False
    for (x1, y1), (x2, y2) in zip(ring, [*ring[1:], ring[0]], strict=True):
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
            odd = not odd
    return odd


corner = st.tuples(st.integers(-3, 12), st.integers(-3, 12)).map(lambda p: (p[0] / 2, p[1] / 2))


@settings(max_examples=200, deadline=None)
@given(st.lists(corner, min_size=4, max_size=9))
def test_pixels_equal_a_ray_for_each_centre(corners: list) -> None:
    # No centre lies on an edge, where a rule decides that another test checks.
    ring = np.array(corners) + np.array((np.pi / 12, np.e / 11))
    grid = Grid(None, None, 6, 7)
    window, burnt = Burner(np.array([shapely.Polygon(ring)]), grid, True).burn(np.array([0]))
    owners = np.zeros((6, 7), np.int32)
    owners[window] = burnt
    expected = [[plain_inside(ring.tolist(), x + 0.5, y + 0.5) for x in range(7)] for y in range(6)]
    np.testing.assert_array_equal(owners, expected)


@pytest.mark.parametrize(
    ("ring", "place"),
    [
        ([(0, 0), (4, 4), (4, 0), (0, 4)], "2 2"),
        ([(0, 0), (4, 0), (4, 4), (1, -1), (0, 4)], "1.6 0"),
        ([(5, 0), (8, 9), (0, 3), (10, 3), (2, 9)], r"\d"),  # a pentagram
        ([(0, 0), (4, 0), (2, 2), (4, 4), (0, 4), (2, 2)], None),  # touches itself in a point
        ([(0, 0), (4, 0), (4, 4), (4, 9), (4, 4), (0, 4)], None),  # has a spike
        ([(0, 0), (4, 0), (4, 4), (0, 4), (0, 2), (0, 4)], None),  # folds back along an edge
    ],
)
def test_rings_that_cross_themselves_are_refused(ring: list, place: str | None) -> None:
    shapes = np.array([None, shapely.Polygon(ring)], object)
    if place is None:
        check_rings(shapes)
    else:
        with refuses("labels", rule=rf"shape 2 is no polygon or point: Self-intersection\[{place}"):
            check_rings(shapes)


def test_neighbours_share_no_pixel(tmp_path: Path) -> None:
    header = scene(tmp_path)
    # Their border runs through centres of pixels.
    features = [
        (polygon(box(2.5, 3.5, 8.5, 9.5)), {"class": "a"}),
        (polygon(box(8.5, 3.5, 12.5, 9.5)), {"class": "b"}),
    ]
    loaded = load_scene(header, geojson(tmp_path / "f.geojson", features))
    assert not any("several classes" in note for note in loaded.notes)
    assert (loaded.labels == 1).sum() == 36
    assert (loaded.labels == 2).sum() == 24


def test_names_of_the_user(tmp_path: Path) -> None:
    header = scene(tmp_path)
    path = geojson(tmp_path / "f.geojson", FIELDS)
    loaded = load_scene(header, path, class_field="crop", class_names="wheat=A wheat,rice=Rice")
    assert loaded.class_names == ("A wheat", "maize")
    np.testing.assert_array_equal(loaded.labels, np.array([0, 2, 1])[fields_map()])
    assert loaded.notes == ("f.geojson: not used: rice; no class has such a number or name",)
    numbers = [(g, {"id": n}) for (g, _), n in zip(FIELDS, (7, 3, 3, 7), strict=True)]
    path = geojson(tmp_path / "n.geojson", numbers)
    assert load_scene(header, path, class_names={7: "corn"}).class_names == ("class 3", "corn")


def test_conflicts_are_left_unlabelled_and_named(tmp_path: Path) -> None:
    header = scene(tmp_path)
    features = [*FIELDS, (polygon(box(10, 3, 14, 9)), {"crop": "maize", "color": None})]
    loaded = load_scene(header, geojson(tmp_path / "f.geojson", features), class_field="crop")
    assert not loaded.labels[3:9, 10:12].any()
    assert (loaded.labels[3:9, 12:14] == 1).all()
    (finding,) = [one for one in loaded.findings if one.code == "shapes-of-several-classes"]
    place = {"row": 3, "column": 10, "classes": ["maize", "wheat"]}
    assert (finding.where, finding.facts) == ("f.geojson", {"count": 12, **place})
    assert loaded.class_colours is None  # the maize has two


def test_what_is_not_in_the_scene_is_named(tmp_path: Path) -> None:
    header = scene(tmp_path)
    far = polygon(box(900, 900, 910, 910))
    features = [
        *FIELDS,
        (far, {"crop": "rice", "color": None}),
        (None, {"crop": "rye", "color": 0}),
    ]
    notes = load_scene(header, geojson(tmp_path / "f.geojson", features), class_field="crop").notes
    assert "f.geojson: 2 of 6 shapes got no pixel of the scene: left out" in notes
    assert "f.geojson: no pixel got rice, rye" in notes


def test_inspect_lists_fields_and_their_values(tmp_path: Path) -> None:
    described = describe_shapes(geojson(tmp_path / "f.geojson", [*FIELDS, (None, {"crop": None})]))
    assert described is not None
    assert described["shapes"] == len(FIELDS) + 1
    counts = Counter(fields["crop"] for _, fields in FIELDS)
    most, count = counts.most_common(1)[0]
    assert described["fields"]["crop"].startswith(f"{len(counts) + 1} values: {most} {count}")
    assert "no value 1" in described["fields"]["crop"]
    np.save(tmp_path / "map.npy", np.ones((3, 3)))
    assert describe_shapes(tmp_path / "map.npy") is None


BOWTIE = polygon(utm([(2, 2), (10, 10), (10, 2), (2, 10)]))
NAN = float("nan")
LINE = {"type": "LineString", "coordinates": box(1, 1, 3, 3)}


@pytest.mark.parametrize(
    ("features", "options", "rule"),
    [
        ([(polygon(box(900, 900, 910, 910)), {"class": "a"})], {}, "no label lies in the scene"),
        (  # around it
            [(polygon(box(at, at, at + 9, at + 9)), {"class": "a"}) for at in (-99, 900)],
            {},
            "no label lies in the scene",
        ),
        (
            [(polygon(box(3.1, 3.1, 3.3, 3.3)), {"class": "a"})],
            {},
            "no label lies in the scene",
        ),
        ([(BOWTIE, {"class": "a"})], {}, "shape 1 is no polygon or point: Self-intersection"),
        ([(LINE, {"class": "a"})], {}, "shape 1 is no polygon or point: LineString"),
        (
            [(FIELDS[0][0], {"class": one}) for one in (" ", None)],
            {},
            "2 shapes have no class in the field class, the first is shape 1",
        ),
        ([(FIELDS[0][0], {"class": 1.5})], {}, "class of shape 1 holds 1.5: must be a text"),
        (
            [(FIELDS[0][0], {"class": -4})],
            {},
            "class of shape 1 holds -4: must be a text, or a whole number from 0",
        ),
        ([(FIELDS[0][0], {"a": 1, "b": 2})], {}, "holds several fields: a, b"),
        ([(FIELDS[0][0], {})], {}, "holds several fields: nothing"),
        ([(FIELDS[0][0], {"a": 1})], {"class_field": "crop"}, "no such field"),
        (
            [(polygon([[1, 1], [2, 2], [1, 1]]), {"a": 1})],
            {},
            "shape 1 is no polygon or point: Too few points",
        ),
        (
            [({"type": "Point", "coordinates": [1, NAN]}, {"a": 1})],
            {},
            "shape 1 is no polygon or point: ",
        ),
        (
            [(polygon([[1, 1], [1e300, 2], [1, 3]]), {"a": 1})],
            {},
            "shape 1 is no polygon or point: ",
        ),
        ([({"type": "Polygon", "coordinates": 5}, {"a": 1})], {}, "no label lies in the scene"),
        ([(FIELDS[0][0], {"class": "a"})], {}, "holds labels of a: 2 classes"),
        ([], {}, "holds no shapes"),
    ],
)
def test_wrong_shapes(tmp_path: Path, features: list, options: dict, rule: str) -> None:
    header = scene(tmp_path)
    path = geojson(tmp_path / "f.geojson", features)
    with pytest.raises(InputError) as caught:
        load_scene(header, path, **options)
    assert rule in caught.value.rule
    assert "\n" not in str(caught.value)
    assert caught.value.argument in ("labels", *options)
    assert str(caught.value.value) in (str(path), "classes", *options.values())


def refused(*files: Path, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        load_scene(*files, **options)
    return caught.value


def test_systems_that_do_not_fit(tmp_path: Path, mat, cube) -> None:
    header = scene(tmp_path)
    bare = vector_file(tmp_path / "bare.shp", FIELDS)
    bare.with_suffix(".prj").unlink()
    error = refused(header, bare, class_field="crop")
    assert error.rule.endswith("names no coordinate system")
    assert "`labels_crs`" in error.hint
    loaded = load_scene(header, bare, class_field="crop", labels_crs="EPSG:32632")
    np.testing.assert_array_equal(loaded.labels, fields_map())
    nowhere = mat("nowhere.mat", cube=cube)
    assert "the scene has no place on the earth" in refused(nowhere, bare, class_field="crop").rule
    error = refused(nowhere, nowhere, class_field="crop")
    assert (error.argument, error.value) == ("class_field", "crop")
    assert error.rule.startswith("is for polygons and points (ENVI ROI, CSV, GeoPackage")


def test_a_system_that_the_user_names(tmp_path: Path) -> None:
    header = scene(tmp_path)
    path = geojson(tmp_path / "f.geojson", FIELDS)  # in EPSG:32632, as the scene
    own = load_scene(header, path, class_field="crop", labels_crs="EPSG:32632")
    assert own.notes == ()
    wrong = geojson(tmp_path / "g.geojson", FIELDS, 4326)
    result = load_scene(header, wrong, class_field="crop", labels_crs="EPSG:32632")
    np.testing.assert_array_equal(result.labels, fields_map())
    assert "not-used" in result.codes


def test_an_unknown_system(tmp_path: Path) -> None:
    header = scene(tmp_path)
    path = geojson(tmp_path / "f.geojson", FIELDS, None)
    error = refused(header, path, class_field="crop", labels_crs="EPSG:99")
    assert error.rule.endswith("no such coordinate system: EPSG:99")
    error = refused(header, path, class_field="crop")
    assert "of the system EPSG:4326 has no place in that of the scene, EPSG:32632" in error.rule


def test_geopackage_layers(tmp_path: Path) -> None:
    header = scene(tmp_path)
    path = vector_file(tmp_path / "f.gpkg", FIELDS, ("2023", 'a "b"'))
    error = refused(header, path, class_field="crop")
    assert error.rule == 'holds several layers: 2023, a "b"'
    assert error.hint == "name one with `labels_key`"
    loaded = load_scene(header, path, class_field="crop", labels_key='a "b"')
    np.testing.assert_array_equal(loaded.labels, fields_map())
    error = refused(header, path, class_field="crop", labels_key="c")
    assert (error.argument, error.value) == ("labels_key", "c")


def test_a_geopackage_that_another_program_has_open_is_read_with_its_last_changes(
    tmp_path: Path,
) -> None:
    header, path = scene(tmp_path), vector_file(tmp_path / "f.gpkg", FIELDS)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode=WAL")
        names = "SELECT name FROM sqlite_master WHERE type='trigger'"
        for (name,) in other.execute(names).fetchall():
            other.execute(f'DROP TRIGGER "{name}"')
        other.execute("UPDATE fields SET crop = 'oats' WHERE crop = 'maize'")
        other.commit()
        assert "oats" in load_scene(header, path, class_field="crop").class_names


def test_a_shapefile_needs_its_table_but_no_index(tmp_path: Path) -> None:
    header = scene(tmp_path)
    path = vector_file(tmp_path / "f.shp", FIELDS)
    path.with_suffix(".shx").unlink()
    loaded = load_scene(header, path, class_field="crop")
    np.testing.assert_array_equal(loaded.labels, fields_map())
    assert not path.with_suffix(".shx").exists()
    path.with_suffix(".dbf").unlink()
    assert refused(header, path).rule == "needs the file f.dbf next to it"


def test_names_in_a_shapefile_that_names_no_encoding(tmp_path: Path) -> None:
    header = scene(tmp_path)
    features = [
        (geometry, {"crop": name}) for (geometry, _), name in zip(FIELDS, "äöäö", strict=True)
    ]
    path = vector_file(tmp_path / "f.shp", features)
    path.with_suffix(".cpg").unlink()
    loaded = load_scene(header, path)
    assert (loaded.class_names, loaded.notes) == (("ä", "ö"), ())
    table = path.with_suffix(".dbf").read_bytes()
    path.with_suffix(".dbf").write_bytes(table.replace("ä".encode(), b"\xe4 "))
    loaded = load_scene(header, path)
    assert "ä" in loaded.class_names
    assert "its texts are no UTF-8: read as Latin-1" in loaded.notes[0]


def test_a_view_that_computes_for_ever_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = scene(tmp_path)
    path = vector_file(tmp_path / "f.gpkg", FIELDS)
    with sqlite3.connect(path) as file:
        file.execute("DROP TABLE fields")
        file.execute(
            "CREATE VIEW fields AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
            "SELECT i AS fid, i AS geom FROM n WHERE i < 0"
        )
    monkeypatch.setattr(untrusted, "CPU_SECONDS", 1)
    with untrusted.untrusted():
        assert "takes too much time" in str(refused(header, path))


def test_no_other_file_and_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(untrusted.VARIABLE, "1")
    header = scene(tmp_path)
    path = geojson(tmp_path / "f.geojson", FIELDS)
    virtual = f"<OGRVRTDataSource><OGRVRTLayer name='f'><SrcDataSource>{path}</SrcDataSource>"
    (tmp_path / "v.kml").write_text(virtual + "</OGRVRTLayer></OGRVRTDataSource>")
    assert "not a readable KML file" in str(refused(header, tmp_path / "v.kml"))
    calls: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                calls.append(server.accept())

        Thread(target=answer, daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/crs"
        for crs in (
            {"type": "url", "properties": {"url": address}},
            {"type": "link", "properties": {"href": address, "type": "proj4"}},
            {"type": "name", "properties": {"name": address}},
        ):
            values = json.loads(path.read_text())
            path.write_text(json.dumps({**values, "crs": crs}))
            refused(header, path, class_field="crop")
    assert calls == []


def test_damaged_files(tmp_path: Path) -> None:
    header = scene(tmp_path)
    for name, text, words in (
        ("a.geojson", "{", "its content is not GeoJSON"),
        (
            "b.json",
            '{"shapes": []}',
            "its content is not GeoJSON",
        ),
        (
            "c.geojson",
            json.dumps({"type": "FeatureCollection", "features": 3}),
            "Missing 'features",
        ),
        ("d.csv", "a,b\n1,2\n", "no such position (row and column, x and y"),
        ("e.csv", "x,y,class\n1,two,3\n", "row 1 holds 1, two: must be finite numbers"),
        ("f.txt", "; ENVI Output of ROIs\n; ROI name: a\n", "no such columns as X and Y"),
        ("g.shp", "", "holds no bytes"),
    ):
        (tmp_path / name).write_text(text)
        error = refused(header, tmp_path / name)
        assert words in str(error)
        assert "\n" not in str(error)
    path = vector_file(tmp_path / "f.gpkg", FIELDS)
    path.write_bytes(path.read_bytes()[:5000])
    assert "not a readable GeoPackage" in str(refused(header, path))
    path = roi(tmp_path / "h.txt", [("a", "1, 2, 3", [(0, 0), (1, 1)])])
    path.write_text(path.read_text().replace("npts: 2", "npts: 5"))
    assert "holds no 5 pixels of region 'a'" in str(refused(header, path))
    roi(path, [("a", "1, 2, 3", [(0, 0), (1, 1)])])
    path.write_text(path.read_text().replace("40 x 30", "41 x 30"))
    assert refused(header, path).rule.startswith("has 30 x 41, and the scene 30 x 40")


def test_whole_polygons_go_to_one_side(tmp_path: Path) -> None:
    header = scene(tmp_path)
    path = geojson(tmp_path / "fields.geojson", FIELDS)
    loaded = load_scene(header, path, class_field="crop")
    for seed in range(4):
        split = make_split(loaded, kind="polygons", seed=seed, patch_size=5)
        owner = loaded.polygons.ravel()
        assert not set(owner[split.train_and_validation]) & set(owner[split.test])
        assert split.kind == "polygons"
        assert split.overlap == 0
    assert make_split(loaded, seed=1).kind == "polygons"
    few = load_scene(header, geojson(tmp_path / "few.geojson", FIELDS[:2]), class_field="crop")
    with pytest.raises(InputError, match="'polygons': leaves fewer than 2 classes of scene"):
        make_split(few, kind="polygons")


def test_polygons_need_polygons(mat, cube, labels) -> None:
    with pytest.raises(InputError, match="'polygons' needs labels drawn as polygons"):
        make_split(load_scene(mat(cube=cube, gt=labels)), kind="polygons", patch_size=3)


def test_folds_hold_out_whole_polygons(tmp_path: Path) -> None:
    header = scene(tmp_path)
    features = [
        (polygon(box(c, r, c + 4, r + 4)), {"class": "ab"[(c + r) // 6 % 2]})
        for c in range(0, 36, 6)
        for r in range(0, 24, 6)
    ]
    loaded = load_scene(header, geojson(tmp_path / "f.geojson", features))
    split = make_split(loaded, kind="polygons", patch_size=3)
    owner = loaded.polygons.ravel()
    pairs = split.folds_like_test(loaded, 16, 1)
    assert len(pairs) == 3
    for learnt, held_out in pairs:
        assert not set(owner[learnt]) & set(owner[held_out])


def test_truth_has_the_ids_of_the_model(tmp_path: Path) -> None:
    path = geojson(tmp_path / "f.geojson", FIELDS)
    grid = Grid((SIDE, 0, LEFT, 0, -SIDE, TOP), "EPSG:32632", HEIGHT, WIDTH)
    ids = {"rice": 4, "wheat": 9}
    maps = labels_on_grid(path, grid, class_field="crop", class_ids=ids).maps
    np.testing.assert_array_equal(maps[0][1], np.array([0, 10, 9])[fields_map()])
    numbers = [(place, {"crop": i % 2 + 1}) for i, (place, _) in enumerate(FIELDS)]
    path = geojson(tmp_path / "n.geojson", numbers)
    (note,) = labels_on_grid(path, grid, class_ids={"rice": 1, "rye": 2}).notes
    assert note.endswith("so numbers are those of the model: 1 = rice, 2 = rye")
