"""Scenes by name, from a server of this machine with files of the same layout."""

import hashlib
import json
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from commands import Run
from hytas.data import load_scene, make_split
from hytas.data.datasets import (
    PUBLISHED_SCENES,
    SCENES,
    NamedScene,
    RemoteFile,
    fetch,
    locate,
)
from hytas.errors import InputError

pytest.importorskip("pooch")


class Quiet(SimpleHTTPRequestHandler):
    requests: list[str]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Serve a file and note that it was asked for."""
        self.requests.append(self.path)
        super().do_GET()


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder that is served, its address, and what was asked of it; the cache is a new folder."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = type("Noting", (Quiet,), {"requests": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as httpd:
        threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setenv("HYTAS_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("no_proxy", "*")
        yield folder, f"http://127.0.0.1:{httpd.server_port}", handler.requests
        httpd.shutdown()


@pytest.fixture
def served_scenes(server, monkeypatch):
    """Every scene's files of the right layout on the server, in small, and SCENES that name it."""
    folder, url, _ = server
    scenes = {}
    for name, entry in SCENES.items():
        classes = {"houston2013": 15, "pavia_u": 9, "ksc": 13}.get(name, 16)
        files = []
        generator = np.random.default_rng(len(name))
        cube = generator.integers(0, 999, (40, 60, 7)).astype(np.uint16)
        labels = np.tile((np.arange(60) // 3) % (classes + 1), (40, 1)).astype(np.uint8)
        train = labels * (generator.random(labels.shape) < 0.3)
        if len(entry.files) == 1:
            contents = [{"input": cube, "TR": train, "TE": labels * (train == 0)}]
        elif len(entry.files) == 2:
            contents = [{name: cube}, {f"{name}_gt": labels}]
        else:
            contents = [{"HSI": cube}, {"TRLabel": train}, {"TSLabel": labels * (train == 0)}]
        for file, variables in zip(entry.files, contents, strict=True):
            savemat(folder / file.name, variables)
            files.append(replace(file, urls=(f"{url}/{file.name}",), checksum=None))
        if entry.files[0].member:
            with zipfile.ZipFile(folder / "all.zip", "w") as archive:
                for file in entry.files:
                    archive.write(folder / file.name, file.member)
            result = f"sha256:{hashlib.sha256((folder / 'all.zip').read_bytes()).hexdigest()}"
            files = [replace(f, urls=(f"{url}/all.zip",), checksum=result) for f in files]
        scenes[name] = replace(entry, files=tuple(files))
    for name, entry in scenes.items():
        monkeypatch.setitem(SCENES, name, entry)


@pytest.mark.parametrize("name", list(SCENES))
def test_by_name(served_scenes, server, name):
    folder, _, requests = server
    scene = load_scene(name)
    assert scene.name == name
    requested = len(requests)
    assert requested >= 1
    again = load_scene(name)
    assert len(requests) == requested, "the second time comes from the cache"
    assert again.fingerprint == scene.fingerprint
    at_hand = load_scene(name, data_dir=folder)
    assert at_hand.fingerprint == scene.fingerprint
    assert len(requests) == requested
    if name in ("indian_pines", "houston2013"):
        assert scene.train is not None
        assert make_split(scene, patch_size=3).kind == "fixed"
    else:
        split = make_split(scene, patch_size=3, validation_fraction=0)
        counts = np.bincount(scene.labels.ravel()[split.train])[1:]
        totals = np.array(list(scene.class_counts().values()))
        np.testing.assert_array_equal(counts, np.minimum(scene.train_counts, totals - 1))


def test_names_and_counts_hold_for_copies_of_other_sizes(tmp_path):
    generator = np.random.default_rng(0)
    cube = generator.integers(0, 999, (40, 60, 7)).astype(np.uint16)
    labels = np.tile((np.arange(60) // 3) % 17, (40, 1)).astype(np.uint8)
    savemat(tmp_path / "Indian_pines_corrected.mat", {"cube": cube})
    savemat(tmp_path / "Indian_pines_gt.mat", {"gt": labels})
    scene = load_scene("indian_pines", data_dir=tmp_path)
    assert (scene.class_names[0], scene.class_names[8]) == ("Alfalfa", "Oats")
    assert scene.train_counts is not None
    assert [i for i, count in enumerate(scene.train_counts) if count == 15] == [0, 6, 8]
    assert make_split(scene, patch_size=3).kind == "random"
    with pytest.raises(InputError, match="the scene 'indian_pines' has its own") as caught:
        load_scene("indian_pines", data_dir=tmp_path, labels_key="gt")
    assert (caught.value.argument, caught.value.value) == ("labels_key", "gt")


def test_another_scene_under_the_name_of_one(tmp_path):
    maps = np.tile(np.arange(20) % 6, (12, 1)).astype(np.uint8)
    half = np.arange(12)[:, None] < 6
    values = {"input": np.ones((12, 20, 7), np.uint16), "TR": maps * half, "TE": maps * ~half}
    savemat(tmp_path / "IndianPine.mat", values)
    with pytest.raises(InputError, match=r"IndianPine\.mat': holds 5 classes, indian_pines has 16"):
        load_scene("indian_pines", data_dir=tmp_path)


def test_a_scene_by_name_is_split_as_published(tmp_path):
    """Table 3 in the order of a single label map: small classes train on more than their half."""
    totals = next(counts for counts in PUBLISHED_SCENES if sum(counts) == 10249)
    labels = np.zeros(145 * 145, np.uint8)
    labels[: sum(totals)] = np.repeat(np.arange(1, 17), totals)
    cube = np.random.default_rng(0).integers(0, 999, (145, 145, 3)).astype(np.uint16)
    savemat(tmp_path / "Indian_pines_corrected.mat", {"cube": cube})
    savemat(tmp_path / "Indian_pines_gt.mat", {"gt": labels.reshape(145, 145)})
    scene = load_scene("indian_pines", data_dir=tmp_path)
    split = make_split(scene)
    trained = np.bincount(scene.labels.ravel()[np.union1d(split.train, split.validation)])[1:]
    tested = np.bincount(scene.labels.ravel()[split.test])[1:]
    assert trained.tolist() == [15 if i in (0, 6, 8) else 50 for i in range(16)]
    assert tested.tolist() == (np.array(totals) - trained).tolist()
    assert split.notes == ()
    # The same number asked for by hand stays within half of a class.
    requested = make_split(scene, kind="random", train_per_class=50, validation_fraction=0)
    assert np.bincount(scene.labels.ravel()[requested.train])[[1, 7, 9, 16]].tolist() == [
        23,
        14,
        10,
        46,
    ]


def test_a_file_of_the_cache_is_checked(server):
    folder, url, requests = server
    content = b"content"
    (folder / "a.mat").write_bytes(content)
    blob = f"blob {len(content)}\0".encode() + content
    for checksum in (
        f"sha256:{hashlib.sha256(content).hexdigest()}",
        f"git:{hashlib.sha1(blob).hexdigest()}",
        None,
    ):
        file = RemoteFile("a.mat", (f"{url}/a.mat",), checksum)
        path = fetch(file)
        asked = len(requests)
        assert fetch(file).read_bytes() == content
        assert len(requests) == asked
        path.write_bytes(b"damaged")
        kept = b"damaged" if checksum is None else content
        assert fetch(file).read_bytes() == kept, "a damaged file is downloaded again"
        path.unlink()
    (folder / "bad").mkdir()
    (folder / "bad" / "a.mat").write_bytes(b"another file")
    for checksum in ("sha256:00", "git:00"):
        urls = f"{url}/bad/a.mat", f"{url}/a.mat"
        with pytest.raises(InputError, match=r"could not be downloaded(.*(expected|must be).*){2}"):
            fetch(RemoteFile("a.mat", urls, checksum))
        assert not path.exists(), "a download that does not match is not kept"


def test_the_next_address_is_tried(server):
    folder, url, requests = server
    (folder / "a.mat").write_bytes(b"content")
    file = RemoteFile("a.mat", (f"{url}/gone/a.mat", f"{url}/a.mat"), None)
    assert fetch(file).read_bytes() == b"content"
    assert requests == ["/gone/a.mat", "/a.mat"]


def test_no_address_answers(server, tmp_path):
    _, url, _ = server
    file = RemoteFile("b.mat", (f"{url}/b.mat", "http://127.0.0.1:9/b.mat"), None)
    with pytest.raises(InputError) as caught:
        fetch(file)
    message = str(caught.value)
    assert "b.mat: could not be downloaded from" in message
    assert "http://127.0.0.1:9/b.mat (no connection)" in message
    assert f"put a copy into {tmp_path / 'cache'}" in message
    assert "\n" not in message
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_scene_that_cannot_be_downloaded_names_its_folder(server, monkeypatch):
    _, url, _ = server
    entry = NamedScene(("a",), (RemoteFile("b.mat", (f"{url}/b.mat",), None),), (("b.mat",),))
    monkeypatch.setitem(SCENES, "mine", entry)
    with pytest.raises(InputError, match=r"folder of your copies with `?data_dir"):
        locate("mine")


def test_a_zip_archive_without_the_member(server):
    folder, url, _ = server
    with zipfile.ZipFile(folder / "z.zip", "w") as archive:
        archive.writestr("x/y.mat", b"1")
    file = RemoteFile("y.mat", (f"{url}/z.zip",), None, "x/y.mat")
    assert fetch(file).read_bytes() == b"1"
    with pytest.raises(InputError, match=r"z\.zip': holds no x/q\.mat"):
        fetch(replace(file, name="q.mat", member="x/q.mat"))
    path = fetch(file)
    path.unlink()
    assert fetch(file).read_bytes() == b"1"


def test_arguments_out_of_rule(tmp_path):
    for call, message in (
        (lambda: locate("mars"), "data='mars': is not one of the scenes indian_pines, salinas"),
        (lambda: load_scene("ksc", data_dir=tmp_path / "no"), "no': no such folder"),
        (
            lambda: load_scene("ksc", data_dir=tmp_path),
            r"not hold ksc; looked for KSC\.mat and KSC_gt\.mat",
        ),
        (lambda: load_scene("x.mat", data_dir=tmp_path), "only for the scenes indian_pines"),
        (
            lambda: load_scene("synthetic", data_dir=tmp_path),
            "data_dir=.*: the scene 'synthetic' has its own",
        ),
        (lambda: load_scene("synthetic", "gt.mat"), "the scene 'synthetic' has its own"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_real_files_by_name_and_their_class_names(real: Path):
    fixed = load_scene("indian_pines", data_dir=real)
    assert fixed.train is not None
    assert fixed.class_names[:2] == ("Corn-notill", "Corn-mintill")
    assert fixed.class_names[13:] == ("Alfalfa", "Grass-pasture-mowed", "Oats")
    usual = load_scene(real / "IndianPine.mat", real / "Indian_pines_gt.mat")
    assert usual.class_names[0] == "Alfalfa"
    salinas = load_scene(real / "SalinasA_corrected.mat", real / "SalinasA_gt.mat")
    assert salinas.class_names[0] == "Brocoli_green_weeds_1"
    assert salinas.class_names[5] == "Lettuce_romaine_7wk"


def test_tables_of_the_paper():
    """Totals of the supplementary's tables 3 to 7."""
    totals = {10249: 16, 10366: 16, 54129: 16, 5348: 6, 42776: 9, 43923: 9, 5211: 13, 15029: 15}
    classes = {sum(counts): len(names) for counts, names in PUBLISHED_SCENES.items()}
    assert classes == totals
    assert all(len(counts) == len(names) for counts, names in PUBLISHED_SCENES.items())
    assert sum(SCENES["pavia_u"].train_counts) == 3921


def test_every_address_is_secure_and_every_known_checksum_is_whole():
    for scene in SCENES.values():
        for file in scene.files:
            assert all(url.startswith("https://") for url in file.urls)
            if file.checksum is not None:
                method, value = file.checksum.split(":")
                assert len(value) == {"git": 40, "sha256": 64}[method]


def test_the_command_lists_the_scenes_and_what_is_downloaded(
    here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYTAS_CACHE", str(tmp_path))
    listed = json.loads(here("scenes", "--json").stdout)
    assert [one["name"] for one in listed] == list(SCENES)
    assert not any(one["here"] for one in listed)
    for name in listed[0]["files"]:
        (tmp_path / name).touch()
    assert [one["here"] for one in json.loads(here("scenes", "--json").stdout)].count(True) == 1
    lines = here("scenes").stdout.splitlines()
    assert lines[0].split() == ["name", "split", "downloaded", "files"]
    assert lines[1].split()[0] == listed[0]["name"]
    assert lines[-1] == f"downloads go to {tmp_path}"
