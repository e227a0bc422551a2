"""A model as one C file: judged on pixels, compiled without a warning, called by the example."""

import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_model import Exported, small_model, small_scene

from hytas._engine import Feasible
from hytas.export import Evidence, export_checked
from hytas.export.c_memory import pack
from hytas.export.c_source import FLAGS, c_source, export_c, open_c, sizes_of, write_header
from hytas.models import InputShape
from hytas.spaces import open_space

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
BARE_METAL = Path(__file__).parent / "bare_metal"
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
    folder = tmp_path_factory.mktemp("field") / "ip"
    folder.mkdir()
    found = export_checked(folder, exported.card, ["c"], evidence_of(exported))["c"]
    return folder / "model.c", found


@pytest.fixture(scope="module")
def smallest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Exported, Path]:
    scene, model, card = tiny()
    path = tmp_path_factory.mktemp("tiny") / "model.c"
    path.write_text(c_source(model, card, "tiny"))
    write_header(path)
    return Exported(scene, model, card, path.parent, {}), path


def test_a_file_passes_its_check_and_serves_the_example(
    exported: Exported, written: tuple[Path, Any], tmp_path: Path
) -> None:
    source, found = written
    assert found["pixels"] == 120
    assert found["labels_changed"] == 0
    assert found["max_difference"] < 1e-5
    text = source.read_text()
    for word in ("malloc", "fopen", "stdio.h"):
        assert word not in text
    program = tmp_path / "classify"
    header = ("-DNAME=ip", "-include", str(source.with_suffix(".h")))
    command = ["cc", *FLAGS, *header, str(EXAMPLE), str(source), "-lm"]
    subprocess.run([*command, "-o", str(program)], check=True, capture_output=True)
    patches = exported.patches(40)
    done = subprocess.run([program], input=patches.tobytes(), capture_output=True, check=True)
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    expected = exported.probabilities(patches)
    ids = [exported.card.class_ids[i] for i in expected.argmax(1)]
    assert [int(line[0]) for line in lines] == ids
    np.testing.assert_allclose([float(line[2]) for line in lines], expected.max(1), atol=1e-4)


@pytest.mark.parametrize(
    ("space", "budget", "seed", "skip"),
    [("hytas-wide", "1K..30K-params", seed, None) for seed in range(6)]
    + [("hytas-wide", "1K..30K-params", seed, "linear") for seed in (1, 3)]  # bands, and pixels
    + [("hytas", "30K..150K-params", 0, None)],
)
def test_a_file_needs_what_the_units_of_budgets_say(
    space: str, budget: str, seed: int, skip: str | None, tmp_path: Path
) -> None:
    """Random architectures with random weights: the costs `ram` and `flash`, to the byte."""
    scene = small_scene("float32")
    shape = InputShape(23, scene.classes, 5, 3)
    opened, bounds = open_space(space, budget, offered=shape.variables())
    feasible = Feasible(opened, bounds)
    numbers = random.Random(seed)
    drawn = (feasible.unrank(numbers.randrange(feasible.at_most())) for _ in range(1000))
    architecture = next(one for one in drawn if one and skip in (None, one.get("skip")))
    model, card = small_model(scene, architecture)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():  # equal weights share their constants
        for parameter in model.network.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    path = export_c(model, tmp_path / "model.c", card)
    cost, found = opened.cost(architecture), sizes_of(path)
    assert (found["ram_bytes"], found["constant_bytes"]) == (cost["ram"], cost["flash"])
    patches = Exported(scene, model, card, tmp_path, {}).patches(30)
    expected = model.eval()(torch.from_numpy(patches)).detach().numpy()
    np.testing.assert_allclose(open_c(path)(patches), expected, atol=1e-5)


def test_arrays_that_a_step_needs_do_not_overlap() -> None:
    """Against every pair of arrays, at every step."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        count = int(rng.integers(2, 12))
        sizes = rng.integers(1, 9, count)
        body = [f"    float tmp{i}_x[1][{size}];" for i, size in enumerate(sizes)]
        body.append("    int64_t tmp99_kept[3];")
        steps = [sorted(rng.choice(count, rng.integers(1, 3), replace=False)) for _ in range(9)]
        body += [f"    step({', '.join(f'tmp{i}_x' for i in step)});" for step in steps]
        packed = pack(body, "space")
        assert "    int64_t tmp99_kept[3];" in packed.lines
        places = {
            int(name): int(place)
            for line in packed.lines
            for name, place in re.findall(r"tmp(\d+)_x\).*\(space \+ (\d+)\)", line)
        }
        assert len(places) == count
        ever = {i: [s for s, step in enumerate(steps) if i in step] or [0] for i in places}
        for step in range(len(steps)):
            live = [i for i, at in ever.items() if at[0] <= step <= at[-1]]
            cells = [c for i in live for c in range(places[i], places[i] + sizes[i])]
            assert len(cells) == len(set(cells))
            assert max(cells, default=0) < packed.floats
        assert packed.floats <= sizes.sum()


@pytest.mark.parametrize(
    ("processor", "unit", "board"),
    [("cortex-m4", "fpv4-sp-d16", "mps2-an386"), ("cortex-m7", "fpv5-d16", "mps2-an500")],
)
def test_a_microcontroller_gives_the_same(
    processor: str, unit: str, board: str, smallest: tuple[Exported, Path], tmp_path: Path
) -> None:
    """Bare metal, in an emulator."""
    if not shutil.which("arm-none-eabi-gcc") or not shutil.which("qemu-system-arm"):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    exported, source = smallest
    patches = exported.patches()[::60]
    (tmp_path / "cases.h").write_text(
        f'#include "{source.with_suffix(".h")}"\n#define MODEL(word) tiny_##word\n'
        f"#define CASES {len(patches)}\n"
        + _array("int16_t patches", patches.reshape(len(patches), -1))
        + _array("float expected", exported.probabilities(patches))
    )
    flags = [f"-mcpu={processor}", "-mthumb", f"-mfpu={unit}", "-mfloat-abi=hard", "-std=gnu99"]
    flags += ["-O3", "-Wall", "-Werror", f"-I{tmp_path}", "-nostartfiles", "--specs=nano.specs"]
    program = tmp_path / "program.elf"
    sources = [BARE_METAL / "main.c", source]
    command = ["arm-none-eabi-gcc", *flags, "-T", BARE_METAL / "board.ld", *sources, "-lm"]
    subprocess.run([*command, "-o", program], check=True)
    machine = ["-M", board, "-nographic", "-monitor", "none", "-serial", "none"]
    machine += ["-semihosting-config", "enable=on,target=native", "-kernel", str(program)]
    done = subprocess.run(
        ["qemu-system-arm", *machine], capture_output=True, check=False, timeout=120
    )
    assert b"same" in done.stdout + done.stderr


def _array(declared: str, values: np.ndarray) -> str:
    rows = ", ".join("{" + ", ".join(map(str, row)) + "}" for row in values.tolist())
    return f"static const {declared}[{len(values)}][{values.shape[1]}] = {{{rows}}};\n"
