"""Forms of label files: pictures, no-data values, names and colours."""

import re
from pathlib import Path

import h5py
import numpy as np
import pyogrio.raw
import pytest
import rasterio
import xarray
from PIL import Image
from scipy.io import savemat

from hytas import RunConfig
from hytas.data import labels_on_grid, load_scene
from hytas.data.grid import Grid
from hytas.data.labels.names import esri_classes
from hytas.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")

COLOURS = np.array([[0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)


@pytest.fixture
def data(tmp_path: Path, cube: np.ndarray) -> Path:
    np.save(tmp_path / "cube.npy", cube)
    return tmp_path / "cube.npy"


@pytest.fixture
def truth() -> np.ndarray:
    """Classes 1, 2 and 3, (9, 11)."""
    return np.random.default_rng(2).integers(0, 4, (9, 11)).astype(np.uint8)


def raster(path: Path, values: np.ndarray, **facts: object) -> Path:
    height, width = values.shape
    kind = values.dtype.name
    size = {"height": height, "width": width, "count": 1, "dtype": kind}
    with rasterio.open(path, "w", driver="GTiff", **size, **facts) as file:
        file.write(values[None])
    return path


class TestValues:
    """What is unlabelled in a map of numbers."""

    @pytest.mark.parametrize("declared", [{}, {"nodata": np.nan}])
    def test_nan(self, tmp_path: Path, data: Path, truth: np.ndarray, declared: dict) -> None:
        values = np.where(truth == 0, np.nan, truth).astype(np.float32)
        scene = load_scene(data, raster(tmp_path / "gt.tif", values, **declared))
        np.testing.assert_array_equal(scene.labels, truth)
        assert scene.notes == ()
        from_one_up = load_scene(data, tmp_path / "gt.tif", zero_is_a_class=True)
        np.testing.assert_array_equal(from_one_up.labels, truth)
        assert from_one_up.class_ids == (2, 3, 4)

    def test_a_raster_of_two_bands_is_no_map(
        self, tmp_path: Path, data: Path, truth: np.ndarray
    ) -> None:
        two = tmp_path / "two.tif"
        with rasterio.open(
            two, "w", driver="GTiff", height=9, width=11, count=2, dtype="uint8"
        ) as file:
            file.write(np.stack([truth, truth * 20]))
        with pytest.raises(InputError) as caught:
            load_scene(data, two)
        assert caught.value.rule.startswith("holds two (2 x 9 x 11 uint8), but no label map")

    def test_0_beside_nan_is_told(self, tmp_path: Path, data: Path, truth: np.ndarray) -> None:
        values = truth.astype(np.float32)
        values[0] = np.nan
        scene = load_scene(data, raster(tmp_path / "gt.tif", values))
        assert scene.codes == ("zero-is-unlabelled",)

    def test_a_declared_minus_1_makes_0_a_class(
        self, tmp_path: Path, data: Path, truth: np.ndarray
    ) -> None:
        values = truth.astype(np.int16) - 1
        scene = load_scene(data, raster(tmp_path / "gt.tif", values, nodata=-1))
        np.testing.assert_array_equal(scene.labels, truth)
        assert scene.class_ids == (1, 2, 3)
        assert scene.class_names == ("label 0", "label 1", "label 2")
        assert scene.codes == ("zero-is-a-class",)
        no_zero = np.where(values == 0, 7, values)
        scene = load_scene(data, raster(tmp_path / "b.tif", no_zero, nodata=-1))
        assert scene.class_ids == (1, 2, 7)
        assert scene.notes == ()

    def test_0_beside_another_declared_value_is_told(
        self, tmp_path: Path, data: Path, truth: np.ndarray
    ) -> None:
        values = truth.copy()
        values[0] = 255
        scene = load_scene(data, raster(tmp_path / "gt.tif", values, nodata=255))
        np.testing.assert_array_equal(scene.labels, np.where(values == 255, 0, truth))
        (finding,) = scene.findings
        assert (finding.code, finding.case) == ("zero-is-unlabelled", "marked")
        assert finding.facts == {"nodata": 255}

    def test_flags_of_netcdf_name_the_classes(
        self, tmp_path: Path, data: Path, truth: np.ndarray
    ) -> None:
        names = "corn soy unclassified"
        flags = {"flag_values": np.array([1, 2, 3], np.int16), "flag_meanings": names}
        array = xarray.DataArray(truth.astype(np.int16), dims=("y", "x"), attrs=flags)
        gt = tmp_path / "gt.nc"
        array.to_dataset(name="gt").to_netcdf(
            gt, engine="h5netcdf", encoding={"gt": {"_FillValue": -1}}
        )
        scene = load_scene(data, gt)
        np.testing.assert_array_equal(scene.labels, truth)  # -1 is declared, but 0 is no flag
        assert scene.class_names == ("corn", "soy", "unclassified")
        assert "mark-is-a-class" in scene.codes
        assert load_scene(data, gt, unlabelled=3).class_ids == (1, 2)
        flags = {"flag_values": np.array([0, 1, 2, 3], np.int16)}
        array.attrs = {**flags, "flag_meanings": "no_data corn soy oats"}
        array.to_dataset(name="gt").to_netcdf(tmp_path / "zero.nc", engine="h5netcdf")
        assert load_scene(data, tmp_path / "zero.nc").notes == ()

    def test_a_colour_is_for_pictures(self, tmp_path: Path, data: Path, truth: np.ndarray) -> None:
        path = raster(tmp_path / "gt.tif", truth)
        with pytest.raises(InputError, match="is for pictures") as caught:
            load_scene(data, path, unlabelled="#FFffff")
        assert (caught.value.argument, caught.value.value) == ("unlabelled", "#ffffff")

    @pytest.mark.parametrize("wrong", ["white", "#ffff", 1.5, float("inf"), "1e99", 2**70])
    def test_what_is_no_value(self, data: Path, wrong: object) -> None:
        with pytest.raises(InputError) as caught:
            load_scene(data, unlabelled=wrong)
        assert caught.value.argument == "unlabelled"
        assert "a colour such as #ffffff, or nan" in caught.value.rule

    def test_nan_may_be_said(self, tmp_path: Path, data: Path, truth: np.ndarray) -> None:
        path = raster(tmp_path / "gt.tif", truth)
        for nan in (float("nan"), "nan"):
            np.testing.assert_array_equal(load_scene(data, path, unlabelled=nan).labels, truth)
            assert RunConfig(data=str(data), labels=str(path), unlabelled=nan).unlabelled is None
        assert RunConfig(unlabelled="#FFFFFF").unlabelled == "#ffffff"


class TestPictures:
    """Pictures, in which a colour is a class."""

    @pytest.mark.parametrize("name", ["a.png", "a.tif"])
    @pytest.mark.parametrize("opaque", [True, False])
    def test_a_colour_is_a_class(
        self, tmp_path: Path, data: Path, truth: np.ndarray, name: str, opaque: bool
    ) -> None:
        picture = COLOURS[truth]
        if not opaque:  # a transparent pixel of any colour is unlabelled
            alpha = np.where(truth == 0, 0, 255).astype(np.uint8)
            picture = np.dstack([np.where(truth[..., None] == 0, 77, picture), alpha])
        Image.fromarray(picture.astype(np.uint8)).save(tmp_path / name)
        scene = load_scene(data, tmp_path / name)
        np.testing.assert_array_equal(scene.labels, truth)
        assert scene.class_names == ("#ff0000", "#00ff00", "#0000ff")
        assert scene.class_colours == ((255, 0, 0), (0, 255, 0), (0, 0, 255))

    def test_the_colour_of_unlabelled_pixels(
        self, tmp_path: Path, data: Path, truth: np.ndarray
    ) -> None:
        picture = np.array([[255] * 3, [0] * 3, [0, 255, 0], [0, 0, 255]], np.uint8)[truth]
        Image.fromarray(picture).save(tmp_path / "a.png")
        scene = load_scene(data, tmp_path / "a.png", unlabelled="#ffffff")
        assert scene.notes == ()
        assert scene.class_names == ("#00ff00", "#0000ff", "#000000")
        np.testing.assert_array_equal(scene.labels == 3, truth == 1)
        np.testing.assert_array_equal(scene.labels == 0, truth == 0)
        picture[truth == 1] = 255, 0, 0
        Image.fromarray(picture).save(tmp_path / "b.png")
        notes = load_scene(data, tmp_path / "b.png").notes
        assert notes[0].startswith("#ffffff is read as a class")

    def test_a_palette(self, tmp_path: Path, data: Path, truth: np.ndarray) -> None:
        picture = Image.fromarray(truth)
        picture.putpalette(COLOURS.ravel().tolist())
        for name in ("a.png", "a.tif"):
            picture.save(tmp_path / name)
            scene = load_scene(data, tmp_path / name)
            np.testing.assert_array_equal(scene.labels, truth)
            assert scene.class_ids == (1, 2, 3)
            assert scene.class_colours == ((255, 0, 0), (0, 255, 0), (0, 0, 255))
        # Without black at 0, numbers of the palette mean nothing.
        picture.putpalette(COLOURS[::-1].ravel().tolist())
        picture.save(tmp_path / "b.png")
        scene = load_scene(data, tmp_path / "b.png")
        np.testing.assert_array_equal(scene.labels, np.array([3, 2, 1, 0])[truth])

    def test_grey_levels_are_numbers(self, tmp_path: Path, data: Path, truth: np.ndarray) -> None:
        for values in (truth, truth.astype(np.uint16) * 300):
            Image.fromarray(values).save(tmp_path / "a.png")
            scene = load_scene(data, tmp_path / "a.png")
            np.testing.assert_array_equal(scene.labels, truth)
            assert scene.class_ids == tuple(np.unique(values[values > 0]).tolist())

    def test_too_many_colours(self, tmp_path: Path, data: Path) -> None:
        noise = np.random.default_rng(0).integers(1, 255, (9, 11, 3)).astype(np.uint8)
        Image.fromarray(noise).save(tmp_path / "a.png")
        with pytest.raises(InputError, match="99 colours, and a colour is a class: at most 64"):
            load_scene(data, tmp_path / "a.png")

    def test_numbers_do_not_mark_colours(
        self, tmp_path: Path, data: Path, truth: np.ndarray
    ) -> None:
        Image.fromarray(COLOURS[truth]).save(tmp_path / "a.png")
        with pytest.raises(InputError, match="a colour is a class; name a colour"):
            load_scene(data, tmp_path / "a.png", unlabelled=255)
        with pytest.raises(InputError, match="a colour is a class") as caught:
            load_scene(data, tmp_path / "a.png", zero_is_a_class=True)
        assert caught.value.argument == "zero_is_a_class"

    def test_a_damaged_picture(self, tmp_path: Path, data: Path, truth: np.ndarray) -> None:
        Image.fromarray(COLOURS[truth]).save(tmp_path / "a.png")
        whole = (tmp_path / "a.png").read_bytes()
        (tmp_path / "a.png").write_bytes(whole[:60])
        with pytest.raises(InputError, match="not a readable PNG file"):
            load_scene(data, tmp_path / "a.png")
        huge = bytearray(whole)
        huge[16:24] = (2**20).to_bytes(4, "big") * 2
        (tmp_path / "a.png").write_bytes(bytes(huge))
        with pytest.raises(InputError):
            load_scene(data, tmp_path / "a.png")

    def test_a_picture_is_compared_with_a_model_by_names(
        self, tmp_path: Path, truth: np.ndarray
    ) -> None:
        Image.fromarray(COLOURS[truth]).save(tmp_path / "a.png")
        ids = {"#0000ff": 4, "#ff0000": 8, "#00ff00": 1}
        labels = labels_on_grid(tmp_path / "a.png", Grid(None, None, 9, 11), class_ids=ids)
        np.testing.assert_array_equal(labels.maps[0][1], np.array([0, 8, 1, 4])[truth])
        with pytest.raises(InputError, match=r"has the classes #00ff00, #0000ff, which the model"):
            labels_on_grid(tmp_path / "a.png", Grid(None, None, 9, 11), class_ids={"#ff0000": 1})
        named = labels_on_grid(
            tmp_path / "a.png",
            Grid(None, None, 9, 11),
            class_names="#ff0000=roof,#00ff00=grass,#0000ff=water",
            class_ids={"grass": 1, "roof": 5, "water": 3},
        )
        np.testing.assert_array_equal(named.maps[0][1], np.array([0, 5, 1, 3])[truth])
        ((_, plain),) = labels_on_grid(tmp_path / "a.png", Grid(None, None, 9, 11)).maps
        np.testing.assert_array_equal(plain, truth)

    def test_names_that_a_model_knows_give_the_numbers(
        self, tmp_path: Path, truth: np.ndarray
    ) -> None:
        np.save(tmp_path / "gt.npy", truth)
        grid, names = Grid(None, None, 9, 11), "1=Corn,2=soy,3=rye"
        ids = {"corn": 1, "rye": 2, "soy": 3}
        labels = labels_on_grid(tmp_path / "gt.npy", grid, class_names=names, class_ids=ids)
        np.testing.assert_array_equal(labels.maps[0][1], np.array([0, 4, 3, 2])[truth])
        assert labels.names[4] == "Corn"
        (note,) = labels_on_grid(tmp_path / "gt.npy", grid, class_ids=ids).notes
        by_number = "the labels name no classes that are known, so numbers are those of the model:"
        assert note == f"{by_number} 1 = corn, 2 = rye, 3 = soy"
        without = {"class 1": 1, "class 2": 2, "class 3": 3}
        assert labels_on_grid(tmp_path / "gt.npy", grid, class_ids=without).notes == ()
        more = labels_on_grid(tmp_path / "gt.npy", grid, class_ids={**without, "class 4": 4})
        assert more.codes == ("labels-from-0",)
        ids["Corn"] = 4
        labels = labels_on_grid(tmp_path / "gt.npy", grid, class_names=names, class_ids=ids)
        np.testing.assert_array_equal(labels.maps[0][1], np.array([0, 4, 3, 2])[truth])
        assert labels.notes == ()


class TestNames:
    """Names and colours of classes."""

    def test_from_the_user(self, tmp_path: Path, data: Path, truth: np.ndarray) -> None:
        np.save(tmp_path / "gt.npy", truth)
        table = tmp_path / "names.csv"
        table.write_text('id;name\n0;nothing\n1;corn\n3;"soy; clean"\n')
        for names in ("1=corn, 3=soy; clean", {1: "corn", "3": "soy; clean"}, table, str(table)):
            scene = load_scene(data, tmp_path / "gt.npy", class_names=names)
            assert scene.class_names == ("corn", "class 2", "soy; clean")
        config = RunConfig(
            data=str(data), labels=str(tmp_path / "gt.npy"), class_names={1: "a, b", 2: "c=d"}
        )
        again = RunConfig.from_dict(config.to_dict())
        table.unlink()
        assert again.load_scene().class_names == ("a, b", "c=d", "class 3")

    def test_by_number_in_the_file(self, tmp_path: Path, data: Path, truth: np.ndarray) -> None:
        np.save(tmp_path / "gt.npy", truth)
        scene = load_scene(
            data, tmp_path / "gt.npy", zero_is_a_class=True, class_names="0=bare,3=soy"
        )
        assert scene.class_names == ("bare", "label 1", "label 2", "soy")

    def test_names_of_other_classes_are_told(
        self, tmp_path: Path, data: Path, truth: np.ndarray
    ) -> None:
        np.save(tmp_path / "gt.npy", truth)
        scene = load_scene(data, tmp_path / "gt.npy", class_names="0=none,1=corn,9=oats")
        assert scene.class_names == ("corn", "class 2", "class 3")
        assert scene.notes == ("not used: 9; no class has such a number or name",)

    def test_of_a_scene_that_is_known_by_name(self) -> None:
        own = load_scene("synthetic").class_names
        scene = load_scene("synthetic", class_names=f"1=one,{own[1]}=two")
        assert scene.class_names == ("one", "two", *own[2:])

    def test_by_colour(self, tmp_path: Path, data: Path, truth: np.ndarray) -> None:
        Image.fromarray(COLOURS[truth]).save(tmp_path / "a.png")
        scene = load_scene(data, tmp_path / "a.png", class_names="#ff0000=roof")
        assert scene.class_names == ("roof", "#00ff00", "#0000ff")

    @pytest.mark.parametrize(
        ("names", "rule"),
        [
            ("corn", "no such file"),
            ("1=corn,soy", "must be pairs such as 1=corn,2=soy"),
            ("1=corn;2=soy", "must be pairs such as"),
            ("1=", "must be pairs such as"),
            ("1=corn,1=soy", "has two names, corn and soy"),
        ],
    )
    def test_what_is_no_name(
        self, tmp_path: Path, data: Path, truth: np.ndarray, names: str, rule: str
    ) -> None:
        np.save(tmp_path / "gt.npy", truth)
        with pytest.raises(InputError) as caught:
            load_scene(data, tmp_path / "gt.npy", class_names=names)
        assert caught.value.argument == "class_names"
        assert rule in caught.value.rule

    def test_from_the_file_beside_a_raster(
        self, tmp_path: Path, data: Path, truth: np.ndarray
    ) -> None:
        path = raster(tmp_path / "gt.tif", truth)
        beside = tmp_path / "gt.tif.aux.xml"
        beside.write_text(
            "<PAMDataset><PAMRasterBand band='1'><CategoryNames><Category>none</Category>"
            "<Category>corn</Category><Category/><Category>oats</Category></CategoryNames>"
            "</PAMRasterBand></PAMDataset>"
        )
        assert load_scene(data, path).class_names == ("corn", "class 2", "oats")
        colours = (("R", 0, 6), ("G", 0, 7), ("B", 0, 8))
        columns = (("Value", 0, 5), ("Class", 2, 2), *colours)
        fields = "".join(
            f"<FieldDefn index='{i}'><Name>{name}</Name><Type>{kind}</Type><Usage>{usage}</Usage>"
            "</FieldDefn>"
            for i, (name, kind, usage) in enumerate(columns)
        )
        rows = "".join(
            f"<Row index='{i}'><F>{i}</F><F>{name}</F><F>{i}</F><F>9</F><F>8</F></Row>"
            for i, name in enumerate(("none", "wheat", "rye", "peas"))
        )
        beside.write_text(
            f"<PAMDataset><PAMRasterBand band='1'><GDALRasterAttributeTable>{fields}{rows}"
            "</GDALRasterAttributeTable></PAMRasterBand></PAMDataset>"
        )
        scene = load_scene(data, path)
        assert scene.class_names == ("wheat", "rye", "peas")
        assert scene.class_colours == ((1, 9, 8), (2, 9, 8), (3, 9, 8))
        beside.write_text(re.sub("<Usage>.</Usage>", "<Usage>0</Usage>", beside.read_text()))
        assert load_scene(data, path).class_names == ("wheat", "rye", "peas")
        beside.write_text(beside.read_text().replace("<Type>2<", "<Type>0<"))  # other numbers
        assert load_scene(data, path).class_names == ("class 1", "class 2", "class 3")
        for wrong in ("<a", "<!DOCTYPE a [<!ENTITY b 'c'>]><PAMDataset/>", "<PAMDataset/>"):
            beside.write_text(wrong)
            assert load_scene(data, path).class_names == ("class 1", "class 2", "class 3")

    def test_from_the_table_of_arcgis(self, tmp_path: Path, data: Path, truth: np.ndarray) -> None:
        path, table = raster(tmp_path / "gt.tif", truth), tmp_path / "gt.tif.vat.dbf"

        def written(encoding: str, **columns: list[object]) -> bytes:
            values = [np.array(each) for each in columns.values()]
            pyogrio.raw.write(
                str(tmp_path / "t.dbf"),
                None,
                [each.astype(object) if each.dtype.kind == "U" else each for each in values],
                list(columns),
                geometry_type=None,
                driver="ESRI Shapefile",
                encoding=encoding,
            )
            (tmp_path / "t.dbf").replace(table)
            return table.read_bytes()

        names, colours = ["Mais, früh", "", "Öl"], {"Red": [1, 2, 3], "Green": [9] * 3}
        written("UTF-8", Value=[1, 2, 3], Class_Name=names, Note=names, Blue=[8] * 3, **colours)
        scene = load_scene(data, path)
        assert scene.class_names == ("Mais, früh", "class 2", "Öl")
        assert scene.class_colours == ((1, 9, 8), (2, 9, 8), (3, 9, 8))
        written("UTF-8", Value=[1, 2, 3], A=names, B=names)  # nothing says which are names
        assert load_scene(data, path).class_names == ("class 1", "class 2", "class 3")
        content = written("UTF-8", Value=[1, 2, 3, 1], A=["a", "b", "c", "d"])
        start, size = (int.from_bytes(content[at : at + 2], "little") for at in (8, 10))
        last = start + 3 * size
        table.write_bytes(content[:last] + b"*" + content[last + 1 :])  # a deleted row
        assert load_scene(data, path).class_names == ("a", "b", "c")
        many = b"".join(n.to_bytes(4, "little") for n in (2**20,)) + content[8:]
        table.write_bytes(content[:4] + many + bytes(2**20 * size))
        assert esri_classes(path) == ({}, {})
        content = written("ISO-8859-1", Value=[1.0, 2.0, 3.0], NLCD_Land=names)
        assert load_scene(data, path).class_names == ("Mais, früh", "class 2", "Öl")
        for place in range(0, len(content), 3):
            table.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
            esri_classes(path)
            table.write_bytes(content[:place])
            esri_classes(path)

    @pytest.mark.parametrize(
        ("text", "names"),
        [
            ("{\nNone, Corn (till), Soy, clean,\nOats}", ("Corn (till)", "Soy, clean", "Oats")),
            ("{None,\nCorn,\nSoy, Clean,\nOats}", ("Corn", "Soy, Clean", "Oats")),
            ("{None, Corn, Soy, Oats}", ("Corn", "Soy", "Oats")),
            ("{None, Corn, Soy, Clean, Oats}", ("class 1", "class 2", "class 3")),
        ],
    )
    def test_envi_names_with_commas(
        self, tmp_path: Path, data: Path, truth: np.ndarray, text: str, names: tuple[str, ...]
    ) -> None:
        truth.tofile(tmp_path / "gt.img")
        (tmp_path / "gt.hdr").write_text(
            "ENVI\nsamples = 11\nlines = 9\nbands = 1\nfile type = ENVI Classification\n"
            f"data type = 1\nclasses = 4\nclass names = {text}\n"
        )
        scene = load_scene(data, tmp_path / "gt.hdr")
        assert scene.class_names == names
        unused = "gt.img: not used: its class names; they are 5, by the commas between them, for 4"
        assert any(note.startswith(unused) for note in scene.notes) == (names[0] == "class 1")

    @pytest.mark.parametrize(("encoding", "name"), [("utf-8", "玉米"), ("gbk", "ÓñÃ×")])
    def test_envi_names_in_another_encoding_are_told(
        self, tmp_path: Path, data: Path, truth: np.ndarray, encoding: str, name: str
    ) -> None:
        truth.tofile(tmp_path / "gt.img")
        fields = "ENVI\nsamples = 11\nlines = 9\nbands = 1\ndata type = 1\nclasses = 4\n"
        text = f"{fields}class names = {{none, 玉米, b, c}}\n"
        (tmp_path / "gt.hdr").write_bytes(text.encode(encoding))
        scene = load_scene(data, tmp_path / "gt.hdr")
        assert scene.class_names == (name, "b", "c")
        assert ("texts-not-utf-8" in scene.codes) == (encoding == "gbk")


@pytest.mark.parametrize("names", [["a", "b", "c"], ["", "-", "a", "-", "-", "b", "-", "c"]])
@pytest.mark.parametrize("suffix", ["npz", "h5", "mat"])
def test_names_in_a_list_next_to_the_map(tmp_path, cube, labels, names, suffix):
    path = tmp_path / f"scene.{suffix}"
    if suffix == "npz":
        np.savez(path, cube=cube, gt=labels, class_names=names)
    elif suffix == "mat":
        cells = np.array(names, object)
        savemat(tmp_path / "s.mat", {"cube": cube, "truth": {"gt": labels, "class_names": cells}})
        assert load_scene(tmp_path / "s.mat").class_names == ("a", "b", "c")
        others = {"file_names": np.array([cube, "x", 3], object), "names": cells[:0]}
        savemat(path, {"cube": cube, "gt": labels, "class_names": cells, **others})
    else:
        with h5py.File(path, "w") as file:
            file["cube"], file["gt"], file["class_names"] = cube, labels, names
    assert load_scene(path).class_names == ("a", "b", "c")
    np.savez(tmp_path / "others.npz", cube=cube, gt=labels, class_names=["a", "b"])
    assert load_scene(tmp_path / "others.npz").class_names == ("class 2", "class 5", "class 7")
