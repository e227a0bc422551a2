"""`hytas space`: count, sample and cost the architectures of a search space, exactly."""

import json
import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from hytas.cli import options
from hytas.errors import InputError
from hytas.spaces import DEFAULT_SPACE

if TYPE_CHECKING:
    from hytas._engine import SearchSpace

_Command = Callable[..., Any]


class VariableType(click.ParamType[tuple[str, int]]):
    """A variable of a space and its value, such as `bands=103`."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        name, equals, number = str(value).partition("=")
        if not equals or not re.fullmatch(r"-?[0-9]{1,18}", number):
            raise InputError(
                "variable", value, "must be a name, '=' and a whole number of at most 18 digits"
            )
        return name, int(number)


def _chosen(variables: tuple[tuple[str, int], ...]) -> dict[str, int]:
    chosen = dict(variables)
    for name, value in variables:
        if chosen[name] != value:
            raise InputError("variable", name, f"is given twice, as {value} and as {chosen[name]}")
    return chosen


variables_option = click.option(
    "--variable",
    "variables",
    type=VariableType(),
    multiple=True,
    help="A variable of the space, such as bands=103; repeatable.",
)


def _space_options(command: _Command) -> _Command:
    return click.option(
        "--space",
        default=DEFAULT_SPACE,
        show_default=True,
        help="A built-in space, or a space file.",
    )(options.plugin_option(expose_value=False)(variables_option(command)))


budget_option = click.option(
    "--budget",
    multiple=True,
    help="Budget, such as 2M-params, 1.5M..2M-params or 4MB-int8; repeated or comma-separated.",
)


@click.group()
def space() -> None:
    """List search spaces; count, sample and cost their architectures."""


def _description(space: "SearchSpace") -> dict[str, Any]:
    from hytas.spaces.shape import DATA_OF

    return {
        "networks_for": DATA_OF.get(space.name),
        "name": space.name,
        "about": space.about,
        "size": space.size(),
        "genes": space.genes,
        "variables": space.variables,
        "costs": space.cost_units,
    }


@space.command("list")
@options.plugin_option(expose_value=False)
@options.json_option
def list_spaces(as_json: bool) -> None:
    """List the spaces: architectures, data and published networks; and those of plug-ins."""
    from hytas._engine import SearchSpace, builtin_spaces
    from hytas.spaces.opening import OWN, open_for_genes
    from hytas.spaces.published import PUBLISHED_NETWORKS
    from hytas.spaces.shape import DATA_OF, IMAGES, SCENES

    data = {SCENES: "for scenes", IMAGES: "for images, or for the patches of a scene as images"}
    spaces = [*map(SearchSpace.builtin, builtin_spaces()), *map(open_for_genes, OWN)]
    if as_json:
        click.echo(json.dumps([_description(one) for one in spaces]))
        return
    for one in spaces:
        click.echo(f"{one.name:17} {one.size():,} architectures")
        if one.about:
            click.echo(f"    {one.about}")
        click.echo(f"    networks: {data.get(DATA_OF.get(one.name, ''), 'none')}")
        published = [
            n for n, net in PUBLISHED_NETWORKS.items() if net.architecture["space"] == one.name
        ]
        if published:
            click.echo(f"    published networks: {', '.join(published)}")
        click.echo(f"    genes: {', '.join(gene['name'] for gene in one.genes)}")
        click.echo(f"    variables: {_values(one)}")
        click.echo(f"    costs: {', '.join(one.cost_names)}")


@space.command()
@click.argument("name", required=False)
@click.option("--network", help="Print a published network instead; `space list` has their names.")
@options.plugin_option(expose_value=False)
def show(name: str | None, network: str | None) -> None:
    """Print the file of a space, to be changed and given as --space FILE.

    \b
    hytas space show hytas-wide > mine.json
    hytas space show --network tf-tas-ti > network.json
    """
    from hytas.spaces.opening import space_text
    from hytas.spaces.published import published_network

    if network is not None:
        network_facts = published_network(network, name)
        click.echo(json.dumps(network_facts.architecture))
        click.echo(f"{network_facts.params:,} parameters; {network_facts.source}", err=True)
        return
    try:
        if name is None:
            raise InputError("name", rule="is missing", hint="`hytas space list` has the names")
        text = space_text(name)
    except ValueError as error:
        raise InputError(str(error)) from None
    if "\n" not in text:  # made from the file of another space
        text = json.dumps(json.loads(text), indent=1) + "\n"
    click.echo(text, nl=False)


@space.command()
@_space_options
@budget_option
@options.json_option
def count(
    space: str, budget: tuple[str, ...], variables: tuple[tuple[str, int], ...], as_json: bool
) -> None:
    """Count the architectures that fit a budget, and those of the whole space, exactly."""
    from hytas._engine import Feasible
    from hytas.spaces import open_space

    opened, bounds = open_space(space, budget, _chosen(variables))
    try:
        feasible = Feasible(opened, bounds).count()
    except ValueError as error:
        raise InputError(str(error)) from None
    size = None
    with suppress(ValueError):  # it does not fit 128 bits
        size = opened.size()
    if as_json:
        result = {"space": opened.name, "budget": str(bounds), "feasible": feasible, "size": size}
        click.echo(json.dumps(result | {"variables": opened.variables}))
        return
    fitting = f"fit {bounds}" if bounds.bounds else "without a budget"
    of = "more than 2^128" if size is None else f"{size:,}"
    click.echo(f"{feasible:,} of {of} architectures of {opened.name} {fitting}")
    _say_variables(opened)


def _say_variables(space: "SearchSpace") -> None:
    """Print the variables to standard error: costs depend on them, as on the number of bands."""
    if space.variables:
        click.echo(f"costs are for {_values(space)}; --variable changes these values", err=True)


def _values(space: "SearchSpace") -> str:
    return ", ".join(f"{name}={value}" for name, value in space.variables.items())


@space.command()
@_space_options
@budget_option
@click.option(
    "-n", "number", type=click.IntRange(1, 10**7), default=1, show_default=True, help="How many."
)
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), default=0, show_default=True)
def sample(
    space: str,
    budget: tuple[str, ...],
    variables: tuple[tuple[str, int], ...],
    number: int,
    seed: int,
) -> None:
    """Draw architectures that fit a budget, as JSON lines with genes and all costs.

    The draws are independent, and their distribution is exact.
    """
    from hytas._engine import Feasible
    from hytas.spaces import open_space

    opened, bounds = open_space(space, budget, _chosen(variables))
    try:
        genomes = Feasible(opened, bounds).sample(number, seed)
    except ValueError as error:
        raise InputError(str(error)) from None
    costs = {name: opened.costs(genomes, name) for name in opened.cost_names}
    for i, architecture in enumerate(opened.unpack(genomes)):
        own = {name: int(values[i]) for name, values in costs.items()}
        click.echo(json.dumps(architecture | {"costs": own}))


@space.command()
@click.argument("architecture", type=click.File(encoding="utf-8"))
@click.option("--space", help="A built-in space, or a space file.  [default: the architecture's]")
@variables_option
@options.plugin_option(expose_value=False)
@click.option(
    "--table",
    "tables",
    multiple=True,
    help="A latency table, for the latency as one more cost; repeatable.",
)
@options.json_option
def cost(
    architecture: Any,
    space: str | None,
    variables: tuple[tuple[str, int], ...],
    tables: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print all costs of the architecture in a JSON file ('-' reads standard input)."""
    from hytas._engine import Budget
    from hytas.spaces import PAPER_SPACE, open_space

    genes = _read_architecture(architecture)
    name = space or genes.get("space", PAPER_SPACE)
    if not isinstance(name, str):
        raise InputError(architecture.name, rule='"space" must be a name')
    needed = Budget.parse([f"0ms-latency@{table}" for table in tables])
    opened, _ = open_space(name, needed, _chosen(variables))
    if space is not None:
        genes.pop("space", None)
    try:
        costs, key = opened.cost(genes), opened.key(genes)
    except ValueError as error:
        raise InputError(architecture.name, rule=str(error)) from None
    if as_json:
        click.echo(json.dumps(costs))
        return
    _say_variables(opened)
    click.echo(key)
    for cost_name, value in costs.items():
        unit = opened.cost_units[cost_name]
        click.echo(f"{cost_name:18} {value:>18,} {unit}")


@space.command(cls=options.PanelCommand)
@options.budgets_option("The constraint: only subnets inside it count.")
@click.option("--out", required=True, help="Space file to write; its rounds lie next to it.")
@options.count_option("--steps", default=3, text="Rounds at most.")
@options.count_option("--training-steps", default=1500, text="Optimiser steps of each supernet.")
@click.option("--subnets", type=int, help="Drawn in each round.  [default: 200]")
@click.option(
    "--extend", type=float, help="Error a step to the next choice is worth.  [default: 0.003]"
)
@click.option(
    "--shift", type=float, help="The same, for the worst choice to go, too.  [default: 0.006]"
)
@click.option("--prune", type=float, help="Error by which a label is worse.  [default: 0.02]")
@options.setting_options("data", "split", more=("space", "seed"))
@options.device_option
@options.plugin_option()
def evolve(
    budgets: tuple[str, ...],
    out: str,
    steps: int,
    training_steps: int,
    device: str,
    **settings: Any,
) -> None:
    """Search the search space (S3): add and drop choices by what they are worth in a supernet.

    By its own measure an evolved space is better. Whole searches in it gained nothing in our
    measurements, also against a control of the same size (docs/research.md): search with --control.

    The same command again goes on where it was stopped.

    \b
    hytas space evolve --data IndianPine.mat --budget 20K..200K-params --out evolved.json
    hytas search --space evolved.json --control hytas-wide --data IndianPine.mat \
      --budget 200K-params
    """
    from hytas.run import RunConfig, evolve_space
    from hytas.supernet import EvolutionSettings, SupernetSettings
    from hytas.train import Recipe

    names = ("subnets", "extend", "shift", "prune")
    given = {name: settings.pop(name) for name in names}
    thresholds = EvolutionSettings(**{n: value for n, value in given.items() if value is not None})
    settings["budget"] = ",".join(budgets)
    config = RunConfig(
        proxy="inherited",
        recipe=Recipe(steps=training_steps, most_epochs=None, patience=1.0),
        supernet_settings=SupernetSettings(),
        presets="full",
        **options.absolute_paths(settings),
    )
    evolved = options.with_display(
        evolve_space, config, out, rounds=steps, settings=thresholds, device=device
    )
    click.echo(f"{'space':<24} {'E':>7} {'T':>7}")
    rows = [(config.space, evolved.before), (out, evolved.after)]
    rows += [("pruned at random", evolved.at_random)] if evolved.at_random else []
    for name, errors in rows:
        click.echo(f"{name[-24:]:<24} {errors.E:>7.4f} {errors.T:>7.4f}")
    click.echo("errors on validation pixels: 1 - mean probability of the true class")
    brought = "".join(f" --plugin {shlex.quote(name)}" for name in config.plugins)
    click.echo(
        f"not shown to find better networks: hytas search --space {out}{brought} --control "
        f"{config.space} searches in both, with as many trainings, and compares"
    )


def _read_architecture(file: Any) -> dict[str, Any]:
    """Return the genes of a file, without the costs that `hytas space sample` writes."""
    from hytas.files import parse_json

    genes = parse_json(file.read(), file.name)
    if not isinstance(genes, dict):
        raise InputError(file.name, rule="must be a JSON object with one entry for each gene")
    genes.pop("costs", None)
    return genes
