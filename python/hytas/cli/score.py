"""`hytas score`: scores of given architectures, into a table."""

import hashlib
import time
from typing import Any

import click

from hytas.cli import options
from hytas.errors import InputError

CHUNK = 16  # architectures between two writes; what a kill can lose


@click.command()
@click.option(
    "--archs",
    required=True,
    help="Architectures: CSV with columns depth, embed_dim, num_heads, mlp_ratio (space hytas), "
    "or JSON lines (any space).",
)
@click.option("--proxy", default="snip,dss", show_default=True, help="Proxies, comma-separated.")
@click.option(
    "--space", help="Space, or space file, that they are of.  [default: as they say themselves]"
)
@options.scene_options(required=False)
@click.option("--out", required=True, help="CSV file of the scores; an unfinished one is resumed.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Networks side by side on a CPU.  [default: all cores]",
)
@click.option(
    "--group-size",
    type=click.IntRange(min=1),
    help="Networks stacked on a GPU, memory allowing.",
)
@click.option(
    "--precision",
    type=click.Choice(["float32", "bf16", "tf32", "float64"]),
    default="float32",
    show_default=True,
    help="Arithmetic of the matrix products.",
)
@click.option(
    "--init",
    type=click.Choice(["supernet", "own", "released"]),
    default="supernet",
    show_default=True,
    help="Initial weights: slices of one supernet, drawn for each architecture, or (space hytas) "
    "those behind the published scores.",
)
@click.option(
    "--fusions",
    type=click.Choice(["shipped", "released"]),
    default="shipped",
    show_default=True,
    help="Cross-layer fusion as hytas ships it, or as the code behind the published scores.",
)
@options.preparation_options
@options.seed_option
@options.device_option
def score(
    archs: str, proxy: str, out: str, device: str, space: str | None, **settings: Any
) -> None:
    """Score given architectures with one or more proxies.

    \b
    hytas score --archs archs.csv --proxy snip,dss --data scene.mat --out scores.csv
    hytas score --archs archs.jsonl --proxy "rank-mean(snip,zico_pp)" --out scores.csv

    A combination ranks an architecture among those of the file, once all are scored.
    """
    from hytas.proxies import Evaluator, base_proxies, parse_proxies, proxy_batch
    from hytas.proxies.architectures import read_architectures
    from hytas.proxies.score_table import ScoreTable
    from hytas.run import RunConfig
    from hytas.run.context import choose_device, prepare

    specs = parse_proxies(proxy)
    architectures = read_architectures(archs)
    names = ("workers", "group_size", "precision", "init", "fusions")
    scoring = {name: settings.pop(name) for name in names}
    config = RunConfig(**options.absolute_paths(settings))
    scene = config.load_scene()
    context = prepare(config, scene, choose_device(device))
    _check_genes(archs, architectures, context.shape, space)
    _check_released(archs, architectures, scoring)
    batch = None
    if any(spec.proxy.needs_data for spec in base_proxies(specs)):
        batch = proxy_batch(
            scene, context.split.train, context.preprocessing, config.patch_size, config.seed
        )
    evaluator = Evaluator(
        proxy,
        context.shape,
        batch=batch,
        device=str(context.device),
        seed=config.seed,
        **scoring,
    )
    decisive = {
        "seed": config.seed,
        "device": context.device.type,
        "scene": scene.fingerprint,
        "shape": context.shape.variables(),
        "labelled patches": None if batch is None else _fingerprint(batch),
        "scaling": [config.scaling, config.bands],
        **{name: scoring[name] for name in ("precision", "init", "fusions")},
    }
    combinations = [spec for spec in specs if spec.members]
    with ScoreTable(out, evaluator.names, architectures, decisive, combinations) as table:
        if config.data == "synthetic":
            click.echo("scoring on the embedded synthetic scene", err=True)
        _score_rest(evaluator, architectures, table)
        failed = table.finish()
    click.echo(f"{len(architectures)} architectures scored, {failed} with a failed score: {out}")


def _fingerprint(arrays: Any) -> str:
    """Of the labelled patches that the scores look at: whatever drew them, scales them, ..."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()


def _check_genes(
    path: str, architectures: list[dict[str, Any]], shape: Any, space: str | None
) -> None:
    """Refuse architectures that their space, or the given one, does not have."""
    from hytas.proxies.sizes import check_genes
    from hytas.spaces import open_space

    opened = open_space(space, offered=shape.variables())[0] if space else None
    for place, architecture in enumerate(architectures, start=1):
        try:
            check_genes(architecture, shape, opened)
        except InputError as error:
            raise InputError(f"{path}, architecture {place}: {error}") from None


def _check_released(
    path: str, architectures: list[dict[str, Any]], scoring: dict[str, Any]
) -> None:
    """Refuse the released code's ways for architectures that it does not have."""
    from hytas.spaces import PAPER_SPACE

    other = [each["space"] for each in architectures if each["space"] != PAPER_SPACE]
    for name in ("init", "fusions"):
        if other and scoring[name] == "released":
            raise InputError(
                f"--{name} released: is of the space {PAPER_SPACE} alone, and {path} holds "
                f"{other[0]}"
            )


def _score_rest(evaluator: Any, architectures: list[dict[str, Any]], table: Any) -> None:
    """Score what the table lacks."""
    started, first = time.monotonic(), table.done
    if first:
        click.echo(f"resuming: {first} of {len(architectures)} are there", err=True)
    size = max(CHUNK, evaluator.chunk)
    for start in range(first, len(architectures), size):
        chunk = architectures[start : start + size]
        table.append(chunk, evaluator.score(chunk))
        rate = (table.done - first) / max(time.monotonic() - started, 1e-9)
        click.echo(f"{table.done}/{len(architectures)}, {rate:.1f}/s", err=True)
