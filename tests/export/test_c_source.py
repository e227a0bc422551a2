"""A model as one C file: judged on pixels, compiled without a warning, called by the example."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_model import Exported, small_model, small_scene

from hytas._engine import Feasible
from hytas.errors import InputError
from hytas.export import Evidence, export_checked
from hytas.export.c_source import FLAGS, FUNCTION, _classes, _quoted, export_c, open_c
from hytas.export.parity import ExportError
from hytas.models import InputShape
from hytas.spaces import open_space

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "classify_pixel.c"


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    pytest.importorskip("emx_onnx_cgen", reason="needs emx-onnx-cgen")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")


def evidence_of(exported: Exported, pixels: int = 120) -> Evidence:
    chosen = np.arange(0, exported.scene.labels.size, 3)[:pixels]
    targets = exported.scene.targets(chosen)
    reader = exported.scene.reader(exported.card.patch_size)
    return Evidence(exported.model, reader, chosen, targets)


def tiny() -> tuple[Any, Any, Any]:
    """A network of at most 5000 parameters, as the smallest that flew."""
    scene = small_scene("int16")
    shape = InputShape(23, scene.classes, 5, 3)
    space, budget = open_space("hytas-wide", "4K..5K-params", offered=shape.variables())
    feasible = Feasible(space, budget)
    model, card = small_model(scene, feasible.unrank(feasible.at_most() // 2))
    return scene, model, card


@pytest.fixture(scope="module")
def written(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The file of the small model, and the figures of its check."""
    folder = tmp_path_factory.mktemp("c")
    found = export_checked(folder, exported.card, ["c"], evidence_of(exported))["c"]
    return folder / "model.c", found


def test_a_file_passes_its_check_and_serves_the_example(
    exported: Exported, written: tuple[Path, Any], tmp_path: Path
) -> None:
    source, found = written
    assert found["pixels"] == 120
    assert found["labels_changed"] == 0
    assert found["max_difference"] < 1e-5
    text = source.read_text()
    assert len(re.findall(rf"\bvoid {FUNCTION}\(", text)) == 1
    for word in ("malloc", "fopen", "stdio.h"):
        assert word not in text
    program = tmp_path / "classify"
    sizes = ("-DTYPE=uint16_t", "-DSIDE=5", "-DBANDS=24", "-DCLASSES=4")
    command = ["cc", *FLAGS, *sizes, str(EXAMPLE), str(source), "-lm"]
    subprocess.run([*command, "-o", str(program)], check=True, capture_output=True)
    patches = exported.patches(40)
    done = subprocess.run([program], input=patches.tobytes(), capture_output=True, check=True)
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    expected = exported.probabilities(patches)
    ids = [exported.card.class_ids[i] for i in expected.argmax(1)]
    assert [int(line[0]) for line in lines] == ids
    np.testing.assert_allclose([float(line[2]) for line in lines], expected.max(1), atol=1e-4)


def test_a_budget_of_5000_parameters(tmp_path: Path) -> None:
    scene, model, card = tiny()
    assert sum(p.numel() for p in model.network.parameters()) <= 5000
    path = export_c(model, tmp_path / "model.c", card)
    exported = Exported(scene, model, card, tmp_path, {})
    patches = exported.patches(60)
    np.testing.assert_allclose(open_c(path)(patches), exported.probabilities(patches), atol=1e-5)


def test_names_of_classes_cannot_leave_their_string(
    exported: Exported, written: tuple[Path, Any], tmp_path: Path
) -> None:
    names = ('*/ "a"\\', "wheat ??/", "米\n", "d%s")
    card = replace(exported.card, class_names=names)
    text = written[0].read_text()
    assert "grass" not in text[: text.index("hytas_class_names[4]")]
    path = tmp_path / "model.c"
    path.write_text(text.replace(_classes(exported.card), _classes(card)))
    assert "grass" not in path.read_text()
    patches = exported.patches(3)
    np.testing.assert_allclose(open_c(path)(patches), exported.probabilities(patches), atol=1e-5)
    escaped = _quoted(names[2]).encode("ascii").decode("unicode_escape")
    assert escaped.strip('"').encode("latin-1").decode() == names[2]


def test_a_file_that_differs_is_refused(
    exported: Exported,
    written: tuple[Path, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drift(model: Any, path: Path, card: Any) -> Path:
        text = written[0].read_text()
        first = re.search(r"= *\{[^}]*?(-?0x1\.[0-9a-f]+p[-+]\d+f|-?\d\.\d+e?[-+]?\d*f)", text)
        assert first is not None
        path.write_text(text[: first.start(1)] + "99.0f" + text[first.end(1) :])
        return path

    from hytas.export import formats

    changed = formats.FORMATS["c"]._replace(write=drift)
    monkeypatch.setitem(formats.FORMATS, "c", changed)
    (tmp_path / "model.c").write_text("before")
    with pytest.raises(ExportError, match="differs from torch"):
        export_checked(tmp_path, exported.card, ["c"], evidence_of(exported, 20))
    assert (tmp_path / "model.c").read_text() == "before"


def test_what_is_missing_is_named(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.c").write_text("int x = ;")
    with pytest.raises(InputError, match="the C compiler refuses it"):
        open_c(tmp_path / "broken.c")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs the package emx-onnx-cgen"):
        export_c(exported.model, tmp_path / "model.c", exported.card)
