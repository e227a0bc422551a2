"""AutoFormer's findings at small scale: mean pooling, and relative positions.

    hytas benchmark make --data digits --space reduced.json --budget 90K..110K-params -n 20 \\
        --recipe images-light --recipe steps=300 --out build/digits
    python benchmarks/image_variants.py --table build/digits --out build/variants.csv

The networks of the table are trained again with the class token instead of the mean of the tokens,
and without relative positions: on the same images, by the same recipe, with the same seed. Each
difference is one network's. The same call goes on where it was stopped. `--space-file` writes the
reduced space: 2 to 5 layers of width 48 to 96.
"""

import csv
import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from hytas._engine import builtin_space_text
from hytas.lab.benchmark import Benchmark
from hytas.machine import one_thread
from hytas.models import build_network
from hytas.run import RunConfig
from hytas.run.prepared import PreparedScene, prepare_scene
from hytas.train import Recipe, logits_of, train

VARIANTS: dict[str, dict[str, str]] = {
    "class token": {"pooling": "class"},
    "no relative positions": {"relative": "no"},
}
REDUCED = {"depth": [2, 3, 4, 5], "embed_dim": [48, 64, 80, 96]}
COLUMNS = ["network", "variant", "OA", "OA as it is"]
RESAMPLED = 10_000


def write_space(path: Path) -> None:
    """Write the reduced space."""
    space = json.loads(builtin_space_text("autoformer-mini"))
    for gene in space["genes"]:
        gene["values"] = REDUCED.get(gene["name"], gene["values"])
    path.write_text(json.dumps(space, indent=1))


def accuracy(architecture: dict[str, Any], data: PreparedScene, card: dict[str, Any]) -> float:
    """Train a network as the table's were trained; its accuracy on the test images."""
    recipe, seed, split = Recipe(**card["recipe"]), card["seeds"][0], data.split
    drops = {"drop_path": recipe.drop_path, "dropout": recipe.dropout}
    network = build_network(architecture, data.shape, **drops, seed=seed)
    parts = [data.labelled(part) for part in (split.train, split.validation, split.test)]
    train(network, parts[0], parts[1], recipe, seed=seed)
    answers = logits_of(network, parts[2], "cpu")
    return float((answers.argmax(axis=1) == parts[2].targets).mean())


def report(path: Path) -> None:
    """Print mean differences with intervals of 95 %, by resampling the networks."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    print("| variant | networks | mean OA | as it is | difference |\n|---|---|---|---|---|")
    for variant in VARIANTS:
        chosen = [row for row in rows if row["variant"] == variant]
        if not chosen:
            continue
        pairs = np.array([[float(row[name]) for name in COLUMNS[2:]] for row in chosen])
        apart = pairs[:, 0] - pairs[:, 1]
        drawn = np.random.default_rng(0).integers(len(apart), size=(RESAMPLED, len(apart)))
        low, high = np.percentile(apart[drawn].mean(axis=1), [2.5, 97.5])
        means = " | ".join(f"{mean:.4f}" for mean in pairs.mean(axis=0))
        difference = f"{apart.mean():+.4f} ({low:+.4f} to {high:+.4f})"
        print(f"| {variant} | {len(apart)} | {means} | {difference} |")


@click.command(help=__doc__)
@click.option("--table", type=click.Path(path_type=Path), help="Folder of `hytas benchmark make`.")
@click.option("--out", type=click.Path(path_type=Path), help="CSV file of the accuracies.")
@click.option("--space-file", type=click.Path(path_type=Path), help="Write the reduced space.")
def main(table: Path | None, out: Path | None, space_file: Path | None) -> None:
    """Train the variants that the file lacks, and print the table."""
    if space_file is not None:
        write_space(space_file)
    if table is None or out is None:
        if space_file is None:
            raise click.UsageError("give --table and --out, or --space-file")
        return
    card = json.loads((table / "benchmark.json").read_text())
    benchmark = Benchmark.load(str(table))
    config = RunConfig(data=card["scene"], space="autoformer-mini")
    data = prepare_scene(config, config.load_scene())
    if not out.exists():
        out.write_text(",".join(COLUMNS) + "\n")
    with out.open(newline="") as file:
        done = {(row["network"], row["variant"]) for row in csv.DictReader(file)}
    for number, architecture in enumerate(benchmark.architectures()):
        known = benchmark.query(architecture, "OA", card["seeds"][0])
        for variant, genes in VARIANTS.items():
            if (str(number), variant) in done:
                continue
            with one_thread():
                found = accuracy({**architecture, **genes}, data, card)
            with out.open("a", newline="") as file:
                csv.writer(file).writerow([number, variant, found, known])
    report(out)


if __name__ == "__main__":
    main()
