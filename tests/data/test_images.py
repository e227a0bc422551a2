"""Sets of images: folders, arrays, sets by name, their splits, and what is refused."""

import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from hytas.data import ImageSet, SplitSettings, holds_images, load_images
from hytas.data.images import load
from hytas.data.images.decode import read_image, resized
from hytas.data.splits.make import make_image_split
from hytas.errors import InputError


def image(seed: int, side: int = 6, channels: int = 3) -> Any:
    return np.random.default_rng(seed).integers(0, 255, (side, side, channels), dtype=np.uint8)


def save(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = values[..., 0] if values.ndim == 3 and values.shape[2] == 1 else values
    if path.suffix == ".tif":
        tifffile.imwrite(path, plain, photometric="minisblack", planarconfig="contig")
    else:
        Image.fromarray(plain).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of four images."""
    for number in range(8):
        kind = "grass" if number < 4 else "water"
        save(tmp_path / "set" / kind / f"{number}.png", image(number))
    return tmp_path / "set"


def refused(data: Any, **how: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_images(data, **how)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_folder_a_class(folder: Path) -> None:
    (folder / "water" / "notes.txt").write_text("not an image")
    loaded = load_images(folder)
    assert holds_images(folder)
    assert loaded.class_names == ("grass", "water")
    assert loaded.class_counts() == {"grass": 4, "water": 4}
    assert (loaded.side, loaded.channels, loaded.dtype) == (6, 3, np.uint8)
    assert np.array_equal(loaded.read(np.array([5, 1])), [image(5), image(1)])
    assert loaded.files[5] == "water/5.png"
    assert loaded.targets(np.array([0, 7])).tolist() == [0, 1]
    assert loaded.train is None
    again = load_images(folder)
    assert again.fingerprint == loaded.fingerprint
    save(folder / "water" / "5.png", image(99))
    assert load_images(folder).fingerprint != loaded.fingerprint


def test_parts_of_a_folder_are_its_split(tmp_path: Path) -> None:
    for number in range(12):
        part = ["train", "val", "test"][number % 3]
        save(tmp_path / part / f"class{number % 2}" / f"{number}.png", image(number))
    loaded = load_images(tmp_path)
    split = make_image_split(loaded, SplitSettings(validation_fraction=0.0))
    assert split.kind == "fixed"
    assert {loaded.files[n].split("/")[0] for n in split.test} == {"test"}
    assert {loaded.files[n].split("/")[0] for n in split.train} == {"train", "val"}
    assert loaded.notes == ("val/ joins train/, and test/ tests",)
    save(tmp_path / "test" / "other" / "1.png", image(1))
    assert "other is a class that" in refused(tmp_path)


def test_many_bands_and_sixteen_bits(tmp_path: Path) -> None:
    planes = np.random.default_rng(0).integers(0, 60000, (4, 6, 6, 7), dtype=np.uint16)
    for number, values in enumerate(planes):
        save(tmp_path / f"class{number % 2}" / f"{number}.tif", values)
    loaded = load_images(tmp_path)
    assert (loaded.channels, loaded.dtype) == (7, np.uint16)
    assert np.array_equal(loaded.read(np.array([0])), planes[:1])


def test_images_beyond_memory_are_read_when_they_are_needed(folder: Path, monkeypatch) -> None:
    kept = load_images(folder)
    monkeypatch.setattr("hytas.data.images.folder.IN_MEMORY_BYTES", 0)
    lazy = load_images(folder)
    numbers = np.arange(8)
    assert np.array_equal(lazy.read(numbers), kept.read(numbers))
    assert lazy.fingerprint == kept.fingerprint
    (folder / "grass" / "0.png").unlink()
    with pytest.raises(FileNotFoundError):
        lazy.read(numbers)


def test_mixed_sizes_and_channels_are_named(folder: Path) -> None:
    save(folder / "grass" / "odd.png", image(1, side=5))
    text = refused(folder)
    assert "has images of several sizes (6 x 6: 8; 5 x 5: 1, " in text
    assert "odd.png" in text
    assert "resize 5" in text
    assert load_images(folder, resize=4).side == 4
    save(folder / "grass" / "odd.png", image(1, channels=1))
    text = refused(folder)
    assert "has images of several numbers of channels (3: 8; 1: 1, " in text
    assert "resize 6 makes them so" in text
    loaded = load_images(folder, resize=6)
    assert loaded.channels == 3
    assert "images of one channel were given three, as the others have" in loaded.notes


def test_unreadable_images_are_named_and_counted(folder: Path) -> None:
    whole = (folder / "grass" / "0.png").read_bytes()
    (folder / "grass" / "0.png").write_bytes(whole[: len(whole) // 2])
    (folder / "water" / "9.jpg").write_bytes(b"nothing")
    text = refused(folder)
    assert text.startswith(f"data='{folder}': 2 of 9 images cannot be read: ")
    assert "0.png is truncated or corrupt" in text
    assert text.endswith("skip_unreadable leaves such files out")
    loaded = load_images(folder, skip_unreadable=True)
    assert loaded.class_counts() == {"grass": 3, "water": 4}
    note = "2 of 9 images cannot be read and are left out: grass/0.png, water/9.jpg"
    assert note in loaded.notes


def test_what_is_no_set_of_images_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "in folders, one for each class" in refused(tmp_path / "empty")
    one = tmp_path / "one"
    save(one / "alone" / "1.png", image(1))
    assert "holds labels of alone: 2 classes are needed" in refused(one)
    (folder / "zebra").mkdir()
    assert "image of class zebra that" in refused(folder)
    wide = tmp_path / "wide"
    for kind in "ab":
        save(wide / kind / "1.png", image(1)[:4])
    assert "images of 4 x 6 pixels: networks take squares" in refused(wide)
    for parts in (("Train", "Test"), ("train", "test", "valid")):
        for part in parts:
            for kind in "ab":
                save(tmp_path / "parted" / part / kind / "1.png", image(1))
        hint = "name the parts of a split train, val and test"
        assert refused(tmp_path / "parted").endswith(hint)
        shutil.rmtree(tmp_path / "parted")
    for kind in ("bus", "train"):  # classes, which hold images and no folders
        save(tmp_path / "kinds" / kind / "1.png", image(1, side=16))
    assert load_images(tmp_path / "kinds").class_names == ("bus", "train")
    save(tmp_path / "kinds" / "test" / "1.png", image(1, side=16))
    assert refused(tmp_path / "kinds").endswith(hint)
    assert "resize=0: must be 1 to" in refused(folder, resize=0)
    assert "digits has images of one size" in refused("digits", resize=4)


def test_links_and_pipes_are_not_followed(folder: Path) -> None:
    (folder / "grass" / "again").symlink_to(folder)  # a loop below a class is left out
    assert load_images(folder).class_counts() == {"grass": 4, "water": 4}
    os.mkfifo(folder / "grass" / "pipe.png")
    assert "pipe.png is not a file; skip_unreadable" in refused(folder)


def test_a_png_is_read_with_all_its_bits_or_not_at_all(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 60000, (16, 16, 1), dtype=np.uint16)
    save(tmp_path / "grey.png", values)
    assert np.array_equal(read_image(tmp_path / "grey.png"), values)
    save(tmp_path / "colours.png", image(0, side=16))
    assert read_image(tmp_path / "colours.png").dtype == np.uint8
    for colours, channels in ((2, 3), (4, 2), (6, 4)):
        lines = bytes(16 * (1 + 16 * 2 * channels))
        (tmp_path / "deep.png").write_bytes(png_of(16, 16, 16, colours, lines))
        with pytest.raises(
            InputError, match=r"deep.png': cannot be read: of 16 bits and several channels, P"
        ):
            read_image(tmp_path / "deep.png")


def png_of(width: int, height: int, bits: int = 8, colours: int = 0, lines: bytes = b"") -> bytes:
    """A PNG that says how large it is and what its pixels are, with these lines of pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        whole = kind + content
        return len(content).to_bytes(4, "big") + whole + zlib.crc32(whole).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([bits, colours, 0, 0, 0])
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def test_bombs_are_refused_before_they_are_decoded(tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(png_of(60_000, 60_000))
    with pytest.raises(InputError, match="could be decompression bomb"):
        read_image(path)


@pytest.mark.parametrize("mode", ["P", "LA", "RGBA", "1", "CMYK"])
def test_every_mode_becomes_grey_or_colours(tmp_path: Path, mode: str) -> None:
    suffix = "jpg" if mode == "CMYK" else "png"
    path = tmp_path / f"image.{suffix}"
    Image.fromarray(image(0)).convert(mode).save(path)
    assert read_image(path).shape == (6, 6, 1 if mode in ("LA", "1") else 3)


def test_another_size_keeps_type_and_mean() -> None:
    values = np.full((6, 6, 2), 40_000, np.uint16)
    loaded = resized(values, 3)
    assert (loaded.dtype, loaded.shape) == (np.uint16, (3, 3, 2))
    assert (loaded == 40_000).all()


def test_arrays_with_labels(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    images = np.stack([image(number) for number in range(6)])
    np.savez(path, images=images, labels=np.array([3, 7, 3, 7, 3, 7]))
    loaded = load_images(path)
    assert holds_images(path)
    assert loaded.class_names == ("class 3", "class 7")
    assert np.array_equal(loaded.read(np.arange(6)), images)
    np.savez(
        path, x_train=images, y_train=np.arange(6)[:, None] % 2, x_test=images[:2], y_test=[0, 1]
    )
    loaded = load_images(path)
    assert loaded.test is not None
    assert np.flatnonzero(loaded.test).tolist() == [6, 7]
    np.savez(path, cube=np.zeros((6, 6, 4)), labels=np.zeros((6, 6), int))
    assert not holds_images(path)
    np.savez(path, images=np.full((4, 5, 5), np.nan), labels=[0, 1, 0, 1])
    assert "finite numbers of one image or more needed" in refused(path)


@pytest.mark.parametrize("labels", [[0, 1, 0], [0.0, 1.0] * 3, np.eye(6), ["a", "b"] * 3])
def test_images_need_labels_that_fit(tmp_path: Path, labels: Any) -> None:
    path = tmp_path / "set.npz"
    np.savez(path, images=np.zeros((6, 5, 5, 2), np.uint8), labels=labels)
    assert holds_images(path)
    assert "images (6 x 5 x 5 x 2 uint8), labels (" in refused(path)
    assert "with one array of N whole numbers, their labels" in refused(path)


def test_arrays_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    images = np.zeros((6, 5, 5, 2), object)
    np.savez(path, images=images, labels=np.arange(6) % 2)
    assert "Object arrays cannot be loaded" in refused(path)
    np.savez(path, images=np.ones((6, 5, 5, 2)), labels=np.arange(6) % 2)
    whole = bytearray(path.read_bytes())
    whole[whole.index(np.ones(1).tobytes()) + 6] ^= 255
    path.write_bytes(whole)
    assert "is truncated or corrupt: not a readable NumPy npz file" in refused(path)


def test_digits_and_textures() -> None:
    digits = load_images("digits")
    assert (len(digits.labels), digits.side, digits.channels, digits.classes) == (1797, 8, 1, 10)
    textures = load.textures(each=3, side=8)
    assert textures.class_names == load.TEXTURES
    assert textures.fingerprint == load.textures(each=3, side=8).fingerprint
    assert textures.fingerprint != load.textures(1, each=3, side=8).fingerprint


def numbered(counts: list[int]) -> ImageSet:
    labels = np.repeat(np.arange(1, len(counts) + 1), counts).astype(np.int32)
    images = np.zeros((len(labels), 2, 2, 1), np.uint8)
    return load.of_arrays(images, labels, [f"c{n}" for n in range(len(counts))], "set")


def test_random_splits_are_stratified() -> None:
    images = numbered([50, 10, 1])
    split = make_image_split(images, SplitSettings(), seed=4)
    parts = [split.train, split.validation, split.test]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(61))
    counts = [np.bincount(images.labels[part], minlength=4)[1:].tolist() for part in parts]
    assert counts == [[32, 6, 1], [8, 2, 0], [10, 2, 0]]
    counts = "49 training (validation included), 12 test samples"
    assert split.describe() == f"random split: {counts}"
    assert split.notes == (
        "c2 is not both trained and tested: 1 images to train on, 0 to test on, 0 for neither",
    )
    few = make_image_split(images, SplitSettings(train_per_class=5, validation_fraction=0.0))
    assert np.bincount(images.labels[few.train]).tolist() == [0, 5, 5, 1]
    with pytest.raises(InputError, match="split='blocks': is for scenes; images are split by"):
        make_image_split(images, SplitSettings("blocks"))
    with pytest.raises(InputError, match="fewer than 2 classes of set both to train"):
        make_image_split(numbered([1, 1]), SplitSettings())
