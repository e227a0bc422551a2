"""What a report shows of images: which are chosen, and how they look."""

import numpy as np

from hytas.report import ReportImages, choose_samples
from hytas.report.samples import EACH, as_pictures

COUNT = 40


def chosen() -> tuple[ReportImages, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 3, COUNT)
    chances = generator.dirichlet(np.ones(3), COUNT).astype(np.float32)
    images = generator.integers(0, 256, (COUNT, 5, 5, 3)).astype(np.uint8)
    names = [f"{number}.png" for number in range(COUNT)]
    return choose_samples(lambda numbers: images[numbers], truth, chances, names), truth, chances


def test_some_images_of_each_class_and_the_surest_errors_are_chosen() -> None:
    found, truth, chances = chosen()
    right = COUNT - found.errors - 3 * EACH
    assert found.truth[: 3 * EACH].tolist() == [0] * EACH + [1] * EACH + [2] * EACH
    wrong = sorted(
        (number for number in range(COUNT) if chances[number].argmax() != truth[number]),
        key=lambda number: -chances[number].max(),
    )
    assert right < COUNT
    assert found.names[3 * EACH :].tolist() == [f"{number}.png" for number in wrong[:24]]
    samples, errors = found.shown(["a", "<b>", "c"])
    assert (len(samples), len(errors)) == (3 * EACH, min(24, len(wrong)))
    assert not any(row["right"] for row in errors)


def test_pictures_show_any_channels_and_types() -> None:
    generator = np.random.default_rng(0)
    for channels in (1, 2, 3, 7):
        for kind in (np.uint8, np.uint16, np.float32):
            images = (generator.random((2, 200, 200, channels)) * 200).astype(kind)
            seen = as_pictures(images)
            assert seen.shape == (2, 50, 50, 3)
            assert seen.dtype == np.uint8
            assert seen.max() > 150
    grey = as_pictures(np.full((1, 4, 4, 1), 0.5, np.float32))
    assert len(np.unique(grey)) == 1
