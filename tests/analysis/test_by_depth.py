"""What the best networks prefer in each layer."""

import numpy as np
import pytest

from hytas.lab.analysis.sections.genes import by_depth


def test_a_planted_preference_is_found_in_its_layer() -> None:
    generator = np.random.default_rng(0)
    architectures = []
    for _ in range(300):
        depth = int(generator.integers(3, 6))
        heads = generator.integers(3, 7, depth).tolist()
        architectures.append({"depth": depth, "num_heads": heads, "mlp_ratio": [2] * depth})
    accuracy = np.array([item["num_heads"][1] for item in architectures], float)
    accuracy += generator.normal(0, 0.1, 300)
    found = by_depth(architectures, accuracy, 100, 0)
    assert list(found) == ["num_heads"]  # the other gene has one value
    layers = found["num_heads"]
    depths = np.array([item["depth"] for item in architectures])
    assert [one["networks"] for one in layers] == [int((depths > at).sum()) for at in range(5)]
    for one in layers:
        value, low, high = one["best"]
        assert low <= value <= high
        own = [
            a["num_heads"][one["layer"] - 1] for a in architectures if a["depth"] >= one["layer"]
        ]
        assert one["all"] == pytest.approx(np.mean(own))
        if one["layer"] == 2:
            assert value == 6.0
            assert one["spearman"] > 0.95
        else:
            assert low < one["all"] + 0.4
            assert abs(one["spearman"]) < 0.3
