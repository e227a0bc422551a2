"""`hytas score`: score a file of architectures, and write a table."""

import hashlib
import time
from typing import Any

import click

from hytas.cli import options
from hytas.errors import InputError, escaped, reason_of

CHUNK = 16  # architectures between two writes, where this process alone scores


@click.command(cls=options.PanelCommand)
@click.option(
    "--archs",
    required=True,
    help="Architectures: JSON lines, or CSV with a column for each gene and a column space; "
    "without it, they are of the space hytas.",
)
@click.option("--proxy", default="snip,dss", show_default=True, help="Proxies, comma-separated.")
@click.option(
    "--space",
    help="Their space, or its file.  [default: the one that they name, or hytas]",
)
@click.option(
    "--out", required=True, help="CSV file of the scores; an unfinished file is continued."
)
@options.workers_option
@options.setting_options("data", "split", more=("supernet", "seed"))
@options.device_option
@options.untrusted_option
@options.plugin_option()
def score(
    archs: str,
    proxy: str,
    out: str,
    device: str,
    space: str | None,
    workers: str | None,
    **settings: Any,
) -> None:
    """Score a file of architectures with one or more proxies.

    \b
    hytas score --archs archs.csv --proxy snip,dss --data scene.mat --out scores.csv
    hytas score --archs archs.jsonl --proxy "rank-mean(snip,zico_pp)" --out scores.csv

    The table keeps the other columns of a CSV file, such as OA, unless a score has their name. A
    combination ranks the architectures of the file against each other, once all are scored.
    """
    from hytas.machine import choose_device
    from hytas.proxies import Evaluator, base_proxies, parse_proxies
    from hytas.proxies.score_table import ScoreTable
    from hytas.run import RunConfig
    from hytas.run.choosing.searching import patches_for_proxies
    from hytas.run.prepared import prepare_scene
    from hytas.spaces import space_of
    from hytas.spaces.architectures import read_architectures, read_other_columns
    from hytas.spaces.opening import space_name

    specs = parse_proxies(proxy)
    of = None if space is None else space_name(space)
    architectures = read_architectures(archs, of)
    config = RunConfig(proxy=proxy, **options.absolute_paths(settings))
    scene = config.load_scene()
    chosen, data = choose_device(device), prepare_scene(config, scene)
    _check_genes(archs, architectures, data.shape, space)
    names = {*map(str, specs), *(spec.name for spec in base_proxies(specs))}
    for name in {gene for one in architectures for gene in one} & names:
        raise InputError("proxy", name, "is also a gene: the table would have it in two columns")
    batch = patches_for_proxies(data, specs, config.seed)
    inherited = _inherited(config, data, chosen, space or space_of(architectures[0]))
    evaluator = Evaluator(
        proxy,
        data.shape,
        batch=batch,
        device=str(chosen),
        seed=config.seed,
        inherited=inherited,
    )
    decisive = {**_decisive(config, data, batch, inherited), "device": chosen.type}
    combinations = [spec for spec in specs if spec.members]
    kept = read_other_columns(archs, of)
    with ScoreTable(out, evaluator.names, architectures, decisive, combinations, kept) as table:
        if config.data == "synthetic":
            click.echo("scoring on the embedded synthetic scene", err=True)
        reason = _score_rest(evaluator, workers, architectures, table)
        failed = table.finish()
    click.echo(f"{len(architectures)} architectures scored, {failed} with a failed score: {out}")
    if table.without_score == len(architectures):
        rule = f"no architecture got a score; the first reason is {reason or 'in the table'}"
        hint = "`space` names the space of a table without a column space"
        raise InputError("archs", archs, rule, hint)
    if reason:
        click.echo(f"first failure: {escaped(str(reason))}", err=True)


def _inherited(config: Any, data: Any, device: Any, space: str) -> Any | None:
    """Return the score of --supernet, which must be trained for the same scene and split."""
    if config.supernet is None:
        return None
    from hytas.run.context import RunContext
    from hytas.run.supernet import inherited_score
    from hytas.spaces import open_space

    opened, _ = open_space(space, offered=data.shape.variables())
    context = RunContext(config, data, opened, None, device)
    return inherited_score(context, config.supernet)


def _decisive(config: Any, data: Any, batch: Any, inherited: Any) -> dict[str, Any]:
    """Return what of the scene and of the settings decides the scores."""
    from hytas.plugins import loaded_plugins

    return {
        "seed": config.seed,
        "scene": data.scene.fingerprint,
        "shape": data.shape.variables(),
        "labelled patches": None if batch is None else _fingerprint(batch),
        "scaling": [config.scaling, config.bands],
        **({"plugins": sorted(loaded_plugins().values())} if loaded_plugins() else {}),
        **({} if inherited is None else {"supernet": inherited.supernet.digest}),
    }


def _fingerprint(arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()


def _check_genes(
    path: str, architectures: list[dict[str, Any]], shape: Any, space: str | None
) -> None:
    """Refuse architectures that are not in their space, or the given one, or take other data."""
    from hytas.models.table import check_data
    from hytas.proxies import check_architecture
    from hytas.spaces import open_space, space_of
    from hytas.spaces.checks import check_listed

    opened = open_space(space, offered=shape.variables())[0] if space else None
    for place, architecture in enumerate(architectures, start=1):
        try:
            check_architecture(architecture)
            check_data(space_of(architecture), shape)
            check_listed(architecture, shape, opened)
        except InputError as error:
            raise InputError(f"{path}, architecture {place}", rule=reason_of(error)) from None


def _score_rest(
    evaluator: Any, workers: str | None, architectures: list[dict[str, Any]], table: Any
) -> str:
    """Score the architectures that the table lacks; return the first reason of a failure, or ""."""
    from hytas.proxies import with_workers
    from hytas.search import score_parts

    started, first, reason = time.monotonic(), table.done, ""
    if first:
        click.echo(f"resuming: {first} of {len(architectures)} are scored already", err=True)
    with with_workers(evaluator, workers) as scorer:
        for results in score_parts(scorer, architectures[first:], CHUNK):
            table.append(architectures[table.done : table.done + len(results)], results)
            failed = (f"{name}: {why}" for one in results for name, why in one["reasons"].items())
            reason = reason or next(failed, "")
            rate = (table.done - first) / max(time.monotonic() - started, 1e-9)
            click.echo(f"{table.done}/{len(architectures)}, {rate:.1f}/s", err=True)
    return reason
