"""`hytas benchmark`: make a table of trained networks, or fetch a published one."""

from pathlib import Path
from typing import Any

import click

from hytas.cli import options
from hytas.cli.progress import echo
from hytas.errors import InputError


@click.group()
def benchmark() -> None:
    """Make tables of trained networks, to compare searches without training."""


@benchmark.command(cls=options.PanelCommand)
@options.budgets_option("What the networks may cost, such as 500K-params; repeatable.")
@options.count_option("-n", "networks", default=200, text="Number of networks.")
@click.option(
    "--proxies",
    "proxy",
    default="all",
    show_default=True,
    help="Proxies that score the networks, comma-separated.",
)
@options.count_option("--seeds", default=1, text="Trainings of each network.")
@options.recipe_option(
    "Setting of the training, such as steps=300; or one preset: plain, light or full; images or "
    "images-light. Repeatable.  [default: full; for images images-light]"
)
@options.workers_option
@click.option("--out", required=True, help="Folder of the table.")
@options.setting_options("data", "split", more=("space", "seed"))
@options.device_option
@options.plugin_option()
def make(
    budgets: tuple[str, ...],
    networks: int,
    proxy: str,
    recipe: tuple[str, ...],
    workers: str | None,
    out: str,
    device: str,
    **settings: Any,
) -> None:
    """Draw networks of a budget, score them with proxies, and train them all by one recipe.

    The folder then holds table.csv, a line a network, and benchmark.json, which says how it was
    made. The same command goes on where it was stopped. A larger -n or --seeds extends the table.

    \b
    hytas benchmark make --data IndianPine.mat --budget 500K-params --out bench/ip
    hytas benchmark make --data IndianPine.mat --budget 500K-params -n 400 --seeds 2 --out bench/ip
    """
    from hytas.lab.benchmark.make import all_proxies, make_benchmark
    from hytas.proxies import base_proxies, parse_proxies
    from hytas.run import RunConfig
    from hytas.run.config import usual_preset
    from hytas.train import Recipe

    preset = usual_preset(settings["data"])
    chosen, presets = options.recipe_of(Recipe(), preset, recipe, None)
    if chosen.epochs == 0:
        raise InputError("recipe", "epochs=0", "must be 1 or more; with 0 nothing would be trained")
    specs = parse_proxies(all_proxies() if proxy.strip() == "all" else proxy)
    if any(spec.proxy.needs_supernet for spec in base_proxies(specs)):
        rule = "inherited needs a supernet, and the networks of a table are trained alone"
        raise InputError("proxies", proxy, rule, "`hytas score --supernet` scores with one")
    config = RunConfig(
        proxy=",".join(map(str, specs)),
        recipe=chosen,
        presets=presets,
        final_training_on="train",
        **options.absolute_paths({**settings, "budget": ",".join(budgets)}),
    )
    given = {"device": device, "command": options.command_line()}
    table = options.with_display(
        make_benchmark, config, out, networks=networks, workers=workers, **given
    )
    echo(f"written   {table}")


@benchmark.command(cls=options.PanelCommand)
@click.argument("tasks", nargs=-1, required=True, type=options.PATH)
@options.count_option(
    "-n", "networks", default=40, text="Networks of a task: the finalists of its race, and others."
)
@options.workers_option
@options.path_option("--out", required=True, help="Folder of the tables.")
@options.device_option
@options.plugin_option()
def curves(
    tasks: tuple[Path, ...], networks: int, workers: str | None, out: Path, device: str, **_: Any
) -> None:
    """Train networks on all folds of some tasks, to compare rules of a race without training.

    TASKS are TOML files, as in benchmarks/suite. The folder then holds two files a task:
    NAME.curves.gz, what a race sees, and NAME.test.json, the figures of the test; and card.json.
    The same command goes on where it was stopped; a larger -n extends the tables.

    \b
    hytas benchmark curves benchmarks/suite/*.toml --out curves
    """
    from hytas.lab.benchmark.curves import make_curves
    from hytas.lab.benchmark.suite import SuiteTask
    from hytas.run.display import DetailedDisplay

    read = [SuiteTask.read(path) for path in tasks]
    with DetailedDisplay() as console:
        tables = make_curves(
            read,
            out,
            networks=networks,
            workers=workers,
            device=device,
            report=console,
            command=options.command_line(),
        )
    echo(f"written   {len(tables)} tables in {out}")


@benchmark.command()
@click.argument("name")
@click.option(
    "--accuracy",
    help="Figure of the table that becomes the column OA, such as c100_kd_acc.  [default: the "
    "first that most networks have]",
)
@options.path_option("--out", required=True, help="CSV file to write.")
def fetch(name: str, accuracy: str | None, out: Path) -> None:
    """Write a published table as CSV, for `hytas score` and `analyse`.

    NAME is hytas-indian, -houston, -pavia, -ksc or -salinas; ood-vit-nas-tiny, -small or -base;
    vit-bench-101-autoformer, vit-bench-101-autoformer-2 or vit-bench-101-pit; or a file of the
    authors of the latter. A table that is known by name is downloaded once, and its checksum is
    compared.

    \b
    hytas benchmark fetch hytas-indian --out indian.csv
    hytas benchmark fetch vit-bench-101-autoformer --accuracy c100_kd_acc --out vit.csv
    hytas score --archs vit.csv --proxy dss,params --data digits --out scores.csv
    hytas analyse ranking --tables scores.csv
    """
    from hytas.files import atomic_write, check_folder
    from hytas.lab.analysis.tables import HYTAS_TABLES, table_file
    from hytas.lab.benchmark.vit_tables import VIT_TABLES, vit_table, write_vit_table

    check_folder(out, "out")
    if name in HYTAS_TABLES:
        if accuracy is not None:
            raise InputError("accuracy", accuracy, f"{name} has one, the column OA")
        content = table_file(Path(name)).read_bytes()
        with atomic_write(out) as path:
            path.write_bytes(content)
        echo(f"written   {out}")
        return
    if name not in VIT_TABLES and not Path(name).is_file():
        rule = f"must be a file, or one of {', '.join([*HYTAS_TABLES, *VIT_TABLES])}"
        raise InputError("name", name, rule)
    table = vit_table(name, accuracy=accuracy)
    write_vit_table(out, table)
    for note in table.notes:
        echo(f"note: {note}")
    names = ", ".join(table.figures)
    echo(f"figures   {names if len(table.figures) <= 12 else f'{len(table.figures)} of them'}")
    echo(f"written   {out} ({len(table)} networks of {table.architectures[0]['space']})")
