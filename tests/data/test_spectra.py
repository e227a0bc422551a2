"""Tables of spectra: what is read, and that no group lies on two sides of a split."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from hytas.data import Spectra, load_scene, make_split
from hytas.data.spectra.load import describe_columns, read_rows
from hytas.estimator import HSIClassifier
from hytas.job import run_pipeline, train_architecture
from hytas.run import RunConfig

from commands import run_copy  # isort: skip
from refusals import refuses  # isort: skip

WAVES = np.linspace(400, 970, 20)
CROPS = ("beet", "maize", "wheat")


def values(fields: int = 18, each: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return spectra, some bands of which tell the crop, crops and fields."""
    random = np.random.default_rng(0)
    field = np.repeat(np.arange(fields), each)
    spectra = random.normal(size=(len(field), len(WAVES))).astype(np.float32)
    spectra[:, 4:12] += 4 * (field % 3)[:, None]
    return spectra, field % 3, field


def frame() -> pd.DataFrame:
    spectra, crop, field = values()
    table = pd.DataFrame(spectra, columns=[f"{wave:g} nm" for wave in WAVES])
    table.insert(0, "moisture", 0.5)
    table["crop"] = np.array(CROPS)[crop]
    return table.assign(field=[f"f{number}" for number in field])


def left_out(table: Spectra) -> list[str]:
    """Return the columns that are no bands, by the finding on them."""
    (finding,) = [one for one in table.findings if one.code == "columns-no-bands"]
    return list(finding.facts["columns"])


def of_frame(path: Path, **columns: str) -> Spectra:
    scene = load_scene(path, **({"label_column": "crop"} | columns))
    assert isinstance(scene, Spectra)
    return scene


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "tsv.xz", "csv.bz2", "parquet"])
def test_a_file_of_columns_is_read(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"spectra.{suffix}"
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
        frame().to_parquet(path)
    else:
        frame().to_csv(path, sep="\t" if "tsv" in suffix else ",", index=False)
    table = of_frame(path, group_column="field")
    np.testing.assert_allclose(table.cube[:, 0], values()[0], rtol=1e-6)
    np.testing.assert_array_equal(table.labels.ravel(), values()[1] + 1)
    np.testing.assert_allclose(table.wavelengths, WAVES)
    assert table.class_names == CROPS
    assert left_out(table) == ["moisture"]
    assert "18 groups" in table.describe(20)
    assert describe_columns(path)["rows"] == len(frame())
    rows = read_rows(path, len(WAVES), WAVES.tolist(), ("crop", "field"))
    np.testing.assert_allclose(rows.values, values()[0], rtol=1e-6)
    path.write_bytes(path.read_bytes()[:-40])
    if suffix not in ("csv", "tsv"):
        with refuses("data", rule="truncated or corrupt"):
            of_frame(path)


def test_columns_of_one_stem_are_the_bands(tmp_path: Path) -> None:
    table = frame().rename(columns={f"{wave:g} nm": f"R_{wave:g}" for wave in WAVES})
    table.insert(0, "id", range(len(table)))
    table.to_csv(tmp_path / "a.csv", index=False)
    loaded = of_frame(tmp_path / "a.csv")
    np.testing.assert_allclose(loaded.wavelengths, WAVES)
    np.testing.assert_allclose(loaded.cube[:, 0], values()[0], rtol=1e-6)
    assert left_out(loaded) == ["id", "moisture", "field"]
    table[table.columns[::-1]].to_csv(tmp_path / "turned.csv", index=False)
    rows = read_rows(tmp_path / "turned.csv", len(WAVES), WAVES.tolist())
    np.testing.assert_allclose(rows.values, values()[0], rtol=1e-6)
    counted = {f"R_{wave:g}": f"b{number}" for number, wave in enumerate(WAVES, start=1)}
    table.rename(columns=counted).to_csv(tmp_path / "b.csv", index=False)
    loaded = of_frame(tmp_path / "b.csv")
    assert loaded.wavelengths is None
    np.testing.assert_allclose(loaded.cube[:, 0], values()[0], rtol=1e-6)


def test_bands_by_their_names_or_those_given(tmp_path: Path) -> None:
    spectra, crop, _ = values()
    table = pd.DataFrame(spectra[:, :3], columns=["red", "nir", "swir"])
    table = table.assign(code=crop * 10 + 7, crop=np.array(CROPS)[crop])
    table.to_csv(tmp_path / "a.csv", index=False)
    guessed = of_frame(tmp_path / "a.csv")
    assert guessed.bands == 4
    assert "bands-guessed" in guessed.codes
    for given in ("red,nir,swir", "red:swir"):
        loaded = of_frame(tmp_path / "a.csv", band_columns=given)
        assert (loaded.bands, left_out(loaded)) == (3, ["code"])
        assert "bands-guessed" not in loaded.codes
    with refuses("band_columns", "red:blue", "'blue' is no column of numbers"):
        of_frame(tmp_path / "a.csv", band_columns="red:blue")


@pytest.mark.parametrize(
    ("head", "numbers", "waves"),
    [
        ("Wavelength", [450, 550.5, 650], [450, 550.5, 650]),
        ("Wavelength (um)", [0.45, 0.5505, 0.65], [450, 550.5, 650]),
        ("Wavelength/nm", [450, 550.5, 650], [450, 550.5, 650]),
        ("Wavelength [A]", [4500, 5505, 6500], [450, 550.5, 650]),
        ("Wavenumber/cm-1", [5000, 4000, 2000], [2000, 2500, 5000]),
        ("1/cm", [5000, 4000, 2000], [2000, 2500, 5000]),
        ("band", [1, 2, 3], None),
        ("band", [211, 212, 214], None),
        ("Wavenumber (cm-1)", [-50, 0, 50], None),
        ("Raman shift", [-50.5, 0, 50], None),
        ("Raman shift / cm-1", [500, 550, 650], None),
        ("shift/cm-1", [-500, -300, -250], None),
    ],
)
def test_a_table_with_a_spectrum_a_column_is_transposed(
    head: str, numbers: list[float], waves: list[float] | None, tmp_path: Path
) -> None:
    cells = np.arange(24).reshape(3, 8)
    lines = [f"{head},{','.join(['corn', 'oat'] * 4)}", f"plot{',a,a,b,b' * 2}"]
    lines += [f"{wave},{','.join(map(str, row))}" for wave, row in zip(numbers, cells, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    table = of_frame(tmp_path / "a.csv", label_column="sample", group_column="plot")
    np.testing.assert_array_equal(table.cube[:, 0], cells.T)
    assert (table.class_names, table.polygons.max()) == (("corn", "oat"), 2)
    assert "table-transposed" in table.codes
    np.testing.assert_allclose(table.wavelengths, waves) if waves else None
    rows = read_rows(tmp_path / "a.csv", 3, waves, ["sample", "plot"])
    np.testing.assert_array_equal(rows.values, cells.T)


@pytest.mark.parametrize(
    ("names", "bands", "waves"),
    [
        ("id wl_0.45 wl_0.55", 2, [450, 550]),
        ("id WL0.45 wl0.55", 2, [450, 550]),
        ("id 450(nm) 550[nm]", 2, [450, 550]),
        ("id 4.5e-07 5.5e-07", 2, [450, 550]),
        ("x8 x9 x10 x11", 4, [8000, 9000, 10000, 11000]),
        ("x1 x2 450 550", 2, [450, 550]),
        ("x1 x2 R450 R550", 4, None),
        ("ndvi_2016 ndvi_2017 B2 B3 B4", 5, None),
        ("id b0 b1 b2 c0 c1", 5, None),
        ("id 0 1 2 3", 4, None),
        ("id red nir", 3, None),
    ],
)
def test_names_of_bands(names: str, bands: int, waves: list[float] | None, tmp_path: Path) -> None:
    path, columns = tmp_path / "a.csv", names.split()
    cells = np.arange(12 * len(columns)).reshape(12, -1)
    pd.DataFrame(cells, columns=columns).assign(crop=["a", "b"] * 6).to_csv(path, index=False)
    table = of_frame(path)
    assert table.bands == bands
    np.testing.assert_allclose(table.wavelengths, waves) if waves else None
    assert (table.wavelengths is None) == (waves is None)
    stems = {name.rstrip("0123456789.") for name in columns} - {"id", "red", "nir"}
    assert ("bands-guessed" in table.codes) == (waves is None and len(stems) != 1)
    rows = read_rows(path, bands, waves, ["crop"])
    np.testing.assert_array_equal(rows.values, table.cube[:, 0])


def test_files_as_spreadsheets_write_them(tmp_path: Path) -> None:
    table = frame()
    plain = tmp_path / "a.csv"
    table.to_csv(plain, index=False)
    expected = of_frame(plain, group_column="field")
    german, marked = tmp_path / "b.csv", tmp_path / "c.csv"
    decimal_names = {name: name.replace(" nm", ",0") for name in table.columns}
    table.rename(columns=decimal_names).to_csv(german, sep=";", decimal=",", index=False)
    # The first column is a band, behind the mark of UTF-8.
    table.drop(columns="moisture").to_csv(marked, index=False, encoding="utf-8-sig")
    spaced = tmp_path / "d.csv"
    table.set_axis([f" {name} " for name in table.columns], axis=1).to_csv(spaced, index=False)
    signed, tabbed = tmp_path / "e.csv", tmp_path / "f.tsv"
    table.rename(columns={"moisture": "a; b"}).to_csv(tabbed, index=False, sep="\t")
    many = ";" * len(table.columns)
    table.rename(columns={"moisture": many}).to_csv(signed, index=False, quoting=csv.QUOTE_ALL)
    for path in (german, marked, spaced, signed, tabbed):
        loaded = of_frame(path, group_column="field")
        np.testing.assert_allclose(loaded.cube, expected.cube, rtol=1e-6)
        np.testing.assert_allclose(loaded.wavelengths, expected.wavelengths)
        assert loaded.class_names == CROPS
    table.insert(0, "id", np.arange(1, len(table) + 1))  # pandas takes it for an index
    for first in ("id", "moisture"):
        table.loc[:, first:].to_csv(plain, index=False)
        rows = plain.read_text().splitlines()
        plain.write_text("\n".join([rows[0], *(f"{row}," for row in rows[1:])]))
        np.testing.assert_array_equal(of_frame(plain, group_column="field").cube, expected.cube)
        for further in (",7", ",,"):
            plain.write_text("\n".join([rows[0], *(row + further for row in rows[1:])]))
            with refuses("data", plain, "more values than the first line has names; name the col"):
                of_frame(plain)
    table["crop"] = "Dünger"
    table.to_csv(plain, index=False, encoding="cp1252")
    with refuses("data", plain, "no text in UTF-8"):
        of_frame(plain)
    table.to_csv(plain, index=False)
    with refuses("label_column", rule="holds labels of Dünger"):
        of_frame(plain)


def test_names_of_rows_are_no_band(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    table = pd.DataFrame({"red": np.arange(12) / 7, "nir": 0.5, "crop": ["a", "b"] * 6})
    rows = table.to_csv(index=False, sep=" ", quoting=csv.QUOTE_NONNUMERIC).splitlines()
    by_r = "\n".join([rows[0], *(f'"{number}" {row}' for number, row in enumerate(rows[1:], 1))])
    by_pandas = table.sample(frac=1, random_state=0).to_csv()
    numbered = table.assign(id=range(1, 13)).to_csv(index=False)
    for text, left in ((by_r, "row names"), (by_pandas, "row names"), (numbered, "id")):
        path.write_text(text)
        loaded = of_frame(path)
        assert left_out(loaded) == [left]
        np.testing.assert_allclose(np.sort(loaded.cube[:, 0, 0]), table["red"], rtol=1e-6)
        assert read_rows(path, 2, None, ["crop"]).values.shape == (12, 2)
    for doubtful in (by_r.replace('"2"', '"1"'), by_r.replace('"', "")):
        path.write_text(doubtful)
        with refuses("data", path, "a row has more values than the first line has names"):
            of_frame(path)
    path.write_text(table.set_axis(["x450_5", "x550_25", "crop"], axis=1).to_csv(index=False))
    assert of_frame(path).wavelengths.tolist() == [450.5, 550.25]
    path.write_text("\n".join(["0.1,0.25,1", "0.3,0.4,2"] * 6))
    assert "wavelengths-read-as" in of_frame(path, label_column="1").codes
    pytest.importorskip("pyarrow")
    table.set_index("crop").to_parquet(tmp_path / "a.parquet")
    assert of_frame(tmp_path / "a.parquet").class_names == ("a", "b")


SURVEY = "id;x;y;crop;400;500;600\n" + "".join(
    f"{row};{row};{row};{CROPS[row % 2]};0,{row}1;0,{row}2;0,{row}3\n" for row in range(1, 9)
)


@pytest.mark.parametrize("waves", [[400.0, 500.0, 600.0], None])
def test_decimal_commas_beside_whole_numbers(waves: list[float] | None, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(SURVEY)
    table = of_frame(path)
    np.testing.assert_allclose(table.cube[0, 0], [0.11, 0.12, 0.13], rtol=1e-6)
    np.testing.assert_array_equal(table.wavelengths, [400, 500, 600])
    np.testing.assert_allclose(read_rows(path, 3, waves).values[0], [0.11, 0.12, 0.13])


def test_bands_of_text_are_no_reason_to_take_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(SURVEY.replace("0,", "1.200,"))
    rule = "400 holds '1.200,11': must be a number"
    with refuses("data", path, rule):
        of_frame(path)
    for waves in ([400.0, 500.0, 600.0], None):
        with refuses("scene", path, rule):
            read_rows(path, 3, waves)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "holds no bytes"),
        ("\n", "no names of columns"),
        ("crop,400,500\n", "holds no rows"),
        (" crop,crop ,400,500\nbeet,x,0,3\n", "it has 2 columns with the name 'crop'"),
    ],
)
def test_texts_that_are_no_table(text: str, rule: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with refuses("data", path, rule):
        of_frame(path)


def test_copies_of_rows_are_noted(tmp_path: Path) -> None:
    table, path = frame(), tmp_path / "a.csv"
    copies = table.iloc[:5].assign(field="f17")
    pd.concat([table, copies]).to_csv(path, index=False)
    (finding,) = [one for one in of_frame(path).findings if one.code == "rows-repeated"]
    assert finding.facts == {"count": 10}
    assert of_frame(path, group_column="field").codes.count("rows-repeated") == 1
    pd.concat([table, table]).to_csv(path, index=False)  # copies in their own groups harm nothing
    assert not any("repeated" in one for one in of_frame(path, group_column="field").codes)


def test_rows_without_a_label_are_not_used(tmp_path: Path) -> None:
    table = frame()
    table.loc[3, "crop"] = None
    table.to_csv(tmp_path / "a.csv", index=False)
    loaded = of_frame(tmp_path / "a.csv")
    assert loaded.labels[3, 0] == 0
    assert "left-out" in loaded.codes


@pytest.mark.parametrize("form", ["npz", "mat", "two files", "series"])
def test_arrays_with_a_list_of_labels_are_a_table(form: str, tmp_path: Path) -> None:
    spectra, crop, _ = values()
    labels = None
    path = tmp_path / "a.npz"
    if form == "mat":
        path = tmp_path / "a.mat"
        savemat(path, {"x": spectra, "y": crop[:, None]})
    elif form == "two files":
        path, labels = tmp_path / "x.npy", tmp_path / "y.npy"
        np.save(path, spectra)
        np.save(labels, crop)
    else:
        series = spectra.reshape(-1, 4, 5) if form == "series" else spectra
        np.savez(path, x=series, y=crop)
    with refuses("data"):
        load_scene(path, labels)
    table = load_scene(path, labels, label_column="y")
    assert isinstance(table, Spectra)
    np.testing.assert_array_equal(table.cube[:, 0], spectra)
    assert table.class_names == ("0", "1", "2")  # 0 is a class
    assert {"table", "mark-is-a-class"} <= {*table.codes}


def test_the_named_lists_of_a_file_find_their_array(tmp_path: Path) -> None:
    spectra, crop, field = values()
    path = tmp_path / "a.npz"
    names = np.array([name.encode() for name in CROPS])[crop]
    np.savez(path, x=spectra, covariance=np.eye(300), y=names, plot=field)
    table = load_scene(path, label_column="y", group_column="plot")
    np.testing.assert_array_equal(table.cube[:, 0], spectra)
    assert table.class_names == CROPS
    with refuses("label_column", "covariance", "no list"):
        load_scene(path, label_column="covariance")


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "\ufeffsep=;\r\n"])
def test_tables_for_excel_name_their_separator(tmp_path: Path, first: str) -> None:
    text = frame().to_csv(index=False, sep=";", decimal=",")
    (tmp_path / "a.csv").write_text(first + text, encoding="utf-8")
    np.testing.assert_allclose(of_frame(tmp_path / "a.csv").cube[:, 0], values()[0], rtol=1e-6)


def test_missing_values_of_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table = frame().convert_dtypes()
    table["crop"] = pd.array(values()[1], "Int64")
    table.loc[3, "crop"] = pd.NA
    table.loc[4, "400 nm"] = pd.NA
    table["field"] = table["field"].astype("string") + "  "
    table.loc[3, "field"] = pd.NA
    table.to_parquet(tmp_path / "a.parquet")
    loaded = of_frame(tmp_path / "a.parquet", group_column="field", bands="2-20", unlabelled=2)
    assert loaded.class_names == ("0", "1")
    assert loaded.labels[3, 0] == 0
    table.loc[5, "field"] = " "
    table.to_parquet(tmp_path / "a.parquet")
    with refuses("group_column", rule="names no group of 1 rows"):
        of_frame(tmp_path / "a.parquet", group_column="field", bands="2-20")


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"axes": "y,x,band"}, "axes"),
        ({"labels_key": "gt"}, "labels_key"),
        ({"zero_is_a_class": True}, "zero_is_a_class"),
        ({"data_dir": "data"}, "data_dir"),
    ],
)
def test_options_of_scenes_are_refused(options, argument: str, tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "a.csv", index=False)
    with refuses(argument, rule="is for scenes"):
        of_frame(tmp_path / "a.csv", **options)
    with refuses("label_column", "crop", "is for tables of spectra"):
        load_scene("synthetic", label_column="crop")


def test_a_huge_number_is_no_class(tmp_path: Path) -> None:
    table = frame()
    table["crop"] = np.where(values()[1] == 1, 1e30, 2.0)
    table.to_csv(tmp_path / "a.csv", index=False)
    with refuses("label_column", rule=r"is 1e\+30 at row"):
        of_frame(tmp_path / "a.csv")


def test_a_damaged_list_of_labels_is_refused(tmp_path: Path) -> None:
    spectra, crop, _ = values()
    path = tmp_path / "spectra.mat"
    savemat(path, {"x": spectra, "y": crop}, format="4")
    path.write_bytes(path.read_bytes()[:-30])
    with refuses("data", rule="is truncated or corrupt: not a readable MATLAB"):
        load_scene(path, label_column="y")


def test_a_scene_stays_a_scene(tmp_path: Path) -> None:
    cube = np.random.default_rng(0).normal(size=(9, 8, 5))
    np.savez(
        tmp_path / "a.npz",
        cube=cube,
        gt=np.arange(72).reshape(9, 8) % 2 + 1,
        rows=np.arange(9) // 5,
    )
    assert not isinstance(load_scene(tmp_path / "a.npz"), Spectra)
    with refuses("label_column", "gt", "no list"):
        load_scene(tmp_path / "a.npz", label_column="gt")


@pytest.mark.parametrize(
    ("columns", "argument", "rule"),
    [
        ({"label_column": None}, "label_column", "missing; spectra.csv has moisture"),
        ({"label_column": "crops"}, "label_column", "no such column of"),
        ({"group_column": "plot"}, "group_column", "no such column of"),
        ({"group_column": "crop"}, "group_column", "is the label column, too"),
        (
            {"label_column": "moisture"},
            "label_column",
            "labels must be whole numbers.*target_column",
        ),
        ({"group_column": "moisture"}, "group_column", "holds one group"),
    ],
)
def test_columns_that_do_not_fit(columns, argument: str, rule: str, tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "spectra.csv", index=False)
    with refuses(argument, rule=rule):
        of_frame(tmp_path / "spectra.csv", **columns)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("settings", [{}, {"kind": "folds", "folds": 3, "fold": 2}])
def test_no_group_lies_on_two_sides(settings, seed: int, tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "spectra.csv", index=False)
    table = of_frame(tmp_path / "spectra.csv", group_column="field")
    split, groups = make_split(table, seed=seed, **settings), table.polygons.ravel()
    sides = [set(groups[rows]) for rows in (split.train, split.validation, split.test)]
    assert all(sides)
    assert len(set.union(*sides)) == sum(map(len, sides))
    rows = np.concatenate([split.train, split.validation, split.test])
    assert sorted(rows) == list(range(len(groups)))
    for learnt, held_out in split.folds_like_test(table, 16, 1000):
        assert not set(groups[learnt]) & set(groups[held_out])
        assert not set(groups[learnt]) & sides[2]


def test_leakage_is_refused(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "spectra.csv", index=False)
    table = of_frame(tmp_path / "spectra.csv", group_column="field")
    with refuses("split", "random", "spectra of one group on both sides"):
        make_split(table, kind="random")
    with refuses("split", "blocks", "is for scenes"):
        make_split(table, kind="blocks")
    with refuses("split", "groups", "needs groups"):
        make_split(of_frame(tmp_path / "spectra.csv"), kind="groups")


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.slow
def test_a_table_is_searched_and_classified(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "spectra.csv", index=False)
    config = RunConfig(
        budget="8K-params",
        data=str(tmp_path / "spectra.csv"),
        label_column="crop",
        group_column="field",
        effort="quick",
        population=2,
        generations=1,
        finalists=1,
    ).with_epochs(30)
    done = run_pipeline(config, config.load_scene(), tmp_path / "run", workers=1)
    assert done.metrics["test"]["OA"] > 0.6
    rows = rows_of(tmp_path / "run" / "predictions.csv")
    assert list(rows[0]) == ["row", "class", "confidence", "label"]
    frame().drop(columns=["crop", "field"]).to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "new-classes.csv"
    classified = run_copy("classify", tmp_path / "run", tmp_path / "new.csv", "--out", out)
    assert classified.returncode == 0, classified.stderr
    loaded = {row["row"]: row["class"] for row in rows_of(out)}
    assert len(loaded) == 216
    assert all(loaded[row["row"]] == row["class"] for row in rows)
    exported = run_copy("export", tmp_path / "run", "--formats", "c")
    assert exported.returncode == 0, exported.stderr
    assert exported.stdout.endswith("spectra.csv --out predictions.csv\n")


def test_an_architecture_of_patches_is_refused(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "fields.csv", index=False)
    table = of_frame(tmp_path / "fields.csv", group_column="field")
    config = RunConfig(space="hytas-wide", presets="plain")
    genes = {"space": "hytas-wide", "patch": 7}
    with refuses("architecture", rule="a table of spectra has no neighbours.*patch 1"):
        train_architecture(genes, config, table, tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


def test_the_estimator_takes_spectra() -> None:
    spectra, crop, field = values()
    model = HSIClassifier(
        budget="8K-params", effort="quick", population=2, generations=1, finalists=1, epochs=30
    )
    model.fit(spectra, crop, groups=field)
    assert model.classes_.tolist() == [0, 1, 2]
    assert set(model.predict(spectra)) == {0, 1, 2}
    assert model.predict(spectra).shape == (len(spectra),)
    assert model.predict_proba(spectra).shape == (len(spectra), 3)
    assert model.score(spectra, crop) > 0.8
