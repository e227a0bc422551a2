"""The C++ onboard runner when it is stopped, killed, started twice, or loses power or a bit."""

import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onboard_program import Run, Start
from small_model import Exported
from test_rasters import write_cube

from hytas.deploy import DeployedModel
from hytas.deploy.value_range import range_doubt

LINES = 600
SAMPLES = 23


@pytest.fixture
def long(models: dict[str, Exported], tmp_path: Path) -> Path:
    """A cube that takes long enough to be stopped in the middle; some pixels hold no data."""
    cube = np.concatenate([models["aware"].scene.cube] * (LINES // 17 + 1))[:LINES]
    cube[5, 3:] = cube[300] = 9999
    return write_cube(tmp_path / "long", cube, "bil", "<")


def wait_for(part: Path, lines: int, process: subprocess.Popen[str]) -> None:
    """Wait until a map in progress has so many lines."""
    while process.poll() is None:
        if part.exists() and part.stat().st_size >= lines * SAMPLES:
            return
        time.sleep(0.001)
    pytest.fail(f"ended before line {lines}: {process.communicate()}")


def assert_goes_on(done: subprocess.CompletedProcess[str], lines: int) -> None:
    """The run went on behind line `lines` or a later one."""
    assert done.returncode == 0, done.stderr
    (note,) = done.stderr.splitlines()
    assert note.startswith("note: goes on behind line ")
    assert lines <= int(note.split()[5]) < LINES


@pytest.mark.parametrize("smooth", ["none", "guided"])
def test_a_run_goes_on_at_the_last_whole_line(
    onboard: Run, start: Start, models: dict[str, Exported], long: Path, tmp_path: Path, smooth: str
) -> None:
    model, names = models["aware"].files["onnx-scene"], ("whole", "map")
    whole, stopped = (
        [
            *(model, long, tmp_path / f"{name}.hdr", "--smooth", smooth),
            *("--confidence", tmp_path / f"sure-{name}.hdr"),
        ]
        for name in names
    )
    assert onboard(*whole).returncode == 0
    part = tmp_path / "map.img.part"
    for number, lines, code in ((signal.SIGTERM, 40, 143), (signal.SIGKILL, 310, -9)):
        process = start(*stopped)
        wait_for(part, lines, process)
        process.send_signal(number)
        said = process.communicate()[1]
        assert process.returncode == code
        assert ("the same command goes on there" in said) == (number == signal.SIGTERM)
        assert part.stat().st_size // SAMPLES < LINES
    assert_goes_on(onboard(*stopped), 310)
    for kind in ("", "sure-"):
        images = [(tmp_path / f"{kind}{name}.img").read_bytes() for name in names]
        assert images[0] == images[1]
    assert not list(tmp_path.glob("*.part"))


def flip_bit_30(process: subprocess.Popen[str], weights: bytes) -> int:
    """Flip bit 30 of the first weight wherever the memory of a process holds `weights`."""
    count, facts = 0, Path("/proc") / str(process.pid)
    with (facts / "mem").open("r+b", 0) as memory:
        for line in (facts / "maps").read_text().splitlines():
            span, mode, *rest = line.split()
            if not mode.startswith("rw") or (len(rest) > 3 and rest[3].startswith("[v")):
                continue
            first, last = (int(place, 16) for place in span.split("-"))
            memory.seek(first)
            content = memory.read(last - first)
            place = content.find(weights)
            while place >= 0:
                memory.seek(first + place + 3)
                memory.write(bytes([content[place + 3] ^ 0x40]))
                count += 1
                place = content.find(weights, place + 1)
    return count


def with_flipped_weights(
    process: subprocess.Popen[str], part: Path, lines: int, weights: Iterable[bytes]
) -> str:
    """Flip bits of weights in a process behind a line of its map; return what it says."""
    wait_for(part, lines, process)
    process.send_signal(signal.SIGSTOP)
    try:
        count = sum(flip_bit_30(process, one) for one in weights)
    except PermissionError:
        process.kill()
        process.communicate()
        pytest.skip("the memory of another process cannot be written here")
    process.send_signal(signal.SIGCONT)
    assert count > 0
    return process.communicate()[1]


def constants(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from constants(attribute.g)


def test_a_weight_that_changes_in_memory_is_noticed(
    onboard: Run, start: Start, models: dict[str, Exported], long: Path, tmp_path: Path
) -> None:
    model, out = models["aware"].files["onnx-scene"], tmp_path / "map.hdr"
    graph = onnx.load(model).graph
    weights = [one.raw_data[:128] for one in constants(graph) if one.data_type == 1]
    unlike_others = [one for one in weights if len(set(np.frombuffer(one, "<f4"))) == 32]
    assert onboard(model, long, tmp_path / "whole.hdr").returncode == 0
    process = start(model, long, out)
    said = with_flipped_weights(process, tmp_path / "map.img.part", 50, unlike_others)
    assert process.returncode == 2, said
    assert said.startswith("error: model: its weights changed in memory between lines ")
    assert_goes_on(onboard(model, long, out), 16)
    images = [(tmp_path / f"{name}.img").read_bytes() for name in ("whole", "map")]
    assert images[0] == images[1]


def values_of(cube: npt.NDArray[np.float32], name: str) -> npt.NDArray[np.float32]:
    return {
        "as they are": cube,
        "zeros": np.zeros_like(cube),
        "gain of ten": 10 * cube,
        "reversed bands": cube[..., ::-1].copy(),
    }[name]


@pytest.mark.parametrize("name", ["as they are", "zeros", "gain of ten", "reversed bands"])
def test_values_far_from_those_of_the_training_are_told(
    onboard: Run, models: dict[str, Exported], tmp_path: Path, name: str
) -> None:
    model, cube = models["float32"].files["onnx-scene"], models["float32"].scene.cube
    scene = write_cube(tmp_path / "scene", values_of(cube, name), "bil", "<")
    text, out = scene.read_text(), tmp_path / "map.hdr"
    waves = ", ".join(f"{wave:.3f}" for wave in np.linspace(400, 1000, cube.shape[2]))
    known = f"{text}wavelength = {{{waves}}}\nwavelength units = nm\n"
    scene.write_text(known)
    usual = name == "as they are"
    for strict in ((), ("--strict",)):
        here = onboard(model, scene, out, *strict)
        assert here.returncode == (0 if usual or not strict else 2), here.stderr
        start = "error: --strict: the cube has values " if strict else "note: the cube has values "
        assert here.stderr == "" if usual else here.stderr.startswith(start), here.stderr
    said = here.stderr.removeprefix("error: --strict: the cube has ").strip()
    assert said == (range_doubt(DeployedModel.load(model), values_of(cube, name), None) or "")
    scene.write_text(text)
    done = onboard(model, scene, out, "--strict")
    assert done.returncode == 2
    assert "--strict: the cube has no wavelengths, and the model takes bands of" in done.stderr
