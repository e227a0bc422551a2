"""Which genes decide accuracy and scores, overall and among networks of equal size."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hytas.lab.analysis.bootstrap import cell, rounded
from hytas.lab.analysis.factors import Factors
from hytas.lab.analysis.importance import at_equal_size, dependence, fit_forests, importances
from hytas.lab.analysis.scores import proxies_of, rank_last_if_failed
from hytas.lab.analysis.settings import AnalysisSettings, Log
from hytas.lab.analysis.tables import RankingTable
from hytas.pictures.plots import draw_heat_map, draw_intervals, draw_lines
from hytas.report import FactTable, Figure, Section
from hytas.search.ranks import spearman
from hytas.types import Floats

TITLE = "Which genes matter"
ACCURACY, EQUAL = "accuracy", "accuracy at equal parameters"
LEAST = 40
"""Networks that a forest of genes needs."""
MOST_PANELS = 6
BEST = 0.1
"""Share of the networks that count as the best."""
LEAST_BEST = 5
LEAST_NETWORKS = 20
"""Of a layer; fewer do not show a preference."""
LEAST_SHARE = 0.05
"""Of the variance, for a gene that the verdict names: of many, some seem to matter a little."""


def measure(tables: Sequence[RankingTable], settings: AnalysisSettings, log: Log) -> dict[str, Any]:
    """Return what each gene has to do with accuracy and with every score.

    Returns:
        JSON-ready: table -> "networks"; "spearman": accuracy or score -> gene -> rho, for genes
        that are numbers; "importance": accuracy, accuracy at equal parameters, or score ->
        "explained" and "genes": gene -> share of the variance of the ranks, with its interval;
        "dependence": accuracy and accuracy at equal parameters -> gene -> value, mean and interval;
        "by_depth", if the settings say so: the same -> gene -> layers; see `by_depth`.
    """
    measured = {}
    for table in tables:
        log(f"{table.name}: genes")
        factors = Factors.of(table.architectures)
        rows = factors.rows(table.architectures)
        figures = {ACCURACY: table.accuracy}
        if table.size is not None:
            figures[EQUAL] = at_equal_size(table.accuracy, table.size.params)
        scores = proxies_of(table)
        entry: dict[str, Any] = {
            "networks": len(table),
            "spearman": _by_gene(factors, rows, {**figures, **scores}),
            "importance": {},
            "dependence": {},
        }
        if len(table) >= LEAST and factors.genes:
            for name, values in {**figures, **scores}.items():
                log(f"{table.name}: genes and {name}")
                ranks = rank_last_if_failed(values)
                explained, lost = importances(
                    factors, rows, ranks, settings.resamples, settings.seed
                )
                entry["importance"][name] = {"explained": explained, "genes": lost}
            for name, values in figures.items():
                forests = fit_forests(rows, values, settings.seed)
                entry["dependence"][name] = {
                    gene: [
                        [value, *interval]
                        for value, interval in dependence(
                            factors, rows, forests, gene, settings.seed
                        )
                    ]
                    for gene in factors.genes
                }
        if settings.by_depth:
            entry["by_depth"] = {
                name: by_depth(table.architectures, values, settings.resamples, settings.seed)
                for name, values in figures.items()
            }
        measured[table.name] = entry
    return measured


def _by_gene(
    factors: Factors, rows: Floats, figures: Mapping[str, Floats]
) -> dict[str, dict[str, float | None]]:
    numbers = [gene for gene in factors.genes if not factors.labels[gene]]
    return {
        name: {
            gene: spearman(rows[:, factors.columns[gene][0]], rank_last_if_failed(values))
            for gene in numbers
        }
        for name, values in figures.items()
    }


def by_depth(
    architectures: Sequence[Mapping[str, Any]], accuracy: Floats, resamples: int, seed: int
) -> dict[str, list[dict[str, Any]]]:
    """Return the values that the best networks have in each layer, as AutoFormer's supplementary.

    A network without a layer is left out there. So a deep layer compares deep networks only.

    Args:
        accuracy: (n,) larger is better.
        resamples: of the best networks, for the interval of 95 %.

    Returns:
        Gene with a number for each layer -> of each layer "layer" from 1, "networks", "spearman"
        of its value with the accuracy, "all", the mean of its value, "compared", the number of the
        best networks, and "best", the mean over them with its interval. A layer of fewer than
        `LEAST_NETWORKS` networks is left out, and a gene without layers.
    """
    generator = np.random.default_rng(seed)
    preferences: dict[str, list[dict[str, Any]]] = {}
    for gene in _layered(architectures):
        values = [item.get(gene) or [] for item in architectures]
        layers = []
        for layer in range(max(map(len, values))):
            have = np.array([at for at, own in enumerate(values) if len(own) > layer])
            if len(have) < LEAST_NETWORKS:
                break  # deeper layers have fewer
            own = np.array([values[at][layer] for at in have], np.float64)
            order = np.argsort(-accuracy[have], kind="stable")
            best = own[order[: max(LEAST_BEST, round(BEST * len(have)))]]
            drawn = generator.choice(best, (resamples, len(best))).mean(axis=1)
            interval = np.percentile(drawn, [2.5, 97.5])
            layers.append(
                {
                    "layer": layer + 1,
                    "networks": len(have),
                    "spearman": spearman(own, accuracy[have]),
                    "compared": len(best),
                    "all": float(own.mean()),
                    "best": [float(best.mean()), *map(float, interval)],
                }
            )
        if layers:
            preferences[gene] = layers
    return preferences


def _layered(architectures: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the genes with a list of numbers that differ somewhere."""
    names = dict.fromkeys(
        name
        for item in architectures
        for name, value in item.items()
        if isinstance(value, list) and value and not isinstance(value[0], str)
    )
    return [
        name
        for name in names
        if len({value for item in architectures for value in item.get(name) or []}) > 1
    ]


def show(measured: Mapping[str, Any]) -> Section:
    """Return the section of what `measure` returned."""
    grids: list[FactTable] = []
    figures: list[Figure] = []
    sentences: list[str] = []
    for table, entry in measured.items():
        if entry["importance"]:
            sentences.append(_verdict(table, entry["importance"]))
            grids.append(_grid(table, entry["importance"]))
            own = {
                n: entry["importance"][n]["genes"]
                for n in (ACCURACY, EQUAL)
                if n in entry["importance"]
            }
            svg = draw_intervals(own, "permutation importance (share of variance)")
            title = f"{table}: what is lost without a gene"
            figures.append(Figure(title, svg, f"{title}; the table has the numbers"))
            figures += _curves(table, entry)
            grids += _labels(table, entry["dependence"])
        else:
            sentences.append(
                f"{table}: {entry['networks']} networks are too few for a forest of genes; at "
                f"least {LEAST} are needed."
            )
        figures += _map(table, entry["spearman"])
        for name, genes in entry.get("by_depth", {}).items():
            sentences += [_preference(table, name, genes)]
            figures += _layers_drawn(table, name, genes)
            grids += [_layer_grid(table, name, gene, layers) for gene, layers in genes.items()]
    by_layer = (
        f"By depth: the best are {100 * BEST:.0f} % of the networks that have the layer, at least "
        f"{LEAST_BEST}. Layers of fewer than {LEAST_NETWORKS} networks are left out.",
    )
    notes = (
        "A gene of several layers stands for its mean. Importance: a random forest predicts the "
        "ranks of networks that it has not seen; a gene is taken away by giving the networks each "
        "other's values of it. At equal parameters: the difference to the mean of the networks of "
        "nearly the same size. Partial dependence: the mean prediction if all networks had one "
        "value of the gene.",
        *(by_layer if any("by_depth" in entry for entry in measured.values()) else ()),
    )
    return Section("genes", TITLE, sentences, grids, figures, notes)


def _preference(table: str, name: str, genes: Mapping[str, Any]) -> str:
    """Return the layers in which the best networks differ most surely from all."""
    differences = []
    for gene, layers in genes.items():
        larger = [str(one["layer"]) for one in layers if one["best"][1] > one["all"]]
        smaller = [str(one["layer"]) for one in layers if one["best"][2] < one["all"]]
        for clear, word in ((larger, "larger"), (smaller, "smaller")):
            if clear:
                layer = "layer" if len(clear) == 1 else "layers"
                differences.append(f"{gene} in {layer} {', '.join(clear)} is {word}")
    text = "; ".join(differences) or "no gene differs"
    return f"{table}: in the best networks by {name}, compared with all networks, {text}."


def _layers_drawn(table: str, name: str, genes: Mapping[str, Any]) -> list[Figure]:
    panels = {}
    for gene, layers in genes.items():
        places = [one["layer"] for one in layers]
        every = [one["all"] for one in layers]
        best = [[one["best"][at] for one in layers] for at in range(3)]
        panels[gene] = {"best": (places, *best), "all": (places, every, every, every)}
    if not panels:
        return []
    title = f"{table}: preference by depth, {name}"
    svg = draw_lines(panels, ("layer", "mean value"))
    return [Figure(title, svg, f"{title}; the table has the numbers", wide=True)]


def _layer_grid(table: str, name: str, gene: str, layers: Sequence[Mapping[str, Any]]) -> FactTable:
    rows = [
        [
            str(one["layer"]),
            str(one["networks"]),
            rounded(one["spearman"]),
            rounded(one["all"]),
            str(one["compared"]),
            cell(one["best"]),
        ]
        for one in layers
    ]
    columns = ("layer", "networks", f"rho with {name}", "mean", "best", "mean of the best")
    return FactTable(f"{table}: {gene} by depth, {name}", columns, rows)


def _verdict(table: str, importance: Mapping[str, Any]) -> str:
    parts = []
    for name in (ACCURACY, EQUAL):
        if name not in importance:
            continue
        genes = importance[name]["genes"]
        important = [
            gene
            for gene, share in genes.items()
            if share and share[1] > 0 and share[0] >= LEAST_SHARE
        ]
        first = sorted(important, key=lambda gene: -genes[gene][0])[:3]
        if importance[name]["explained"] and importance[name]["explained"][1] <= 0:
            parts.append(f"genes explain nothing of {name}")
        elif first:
            parts.append(f"{name} depends most on {', '.join(first)}")
        else:
            parts.append(f"no gene is shown to matter for {name}")
    return f"{table}: {'; '.join(parts)}."


def _grid(table: str, importance: Mapping[str, Any]) -> FactTable:
    genes = list(next(iter(importance.values()))["genes"])
    rows = [
        [name, cell(entry["explained"]), *(cell(entry["genes"][gene]) for gene in genes)]
        for name, entry in importance.items()
    ]
    title = f"{table}: share of the variance of ranks that is lost without a gene"
    return FactTable(title, ("of", "explained by all genes", *genes), rows)


def _curves(table: str, entry: Mapping[str, Any]) -> list[Figure]:
    """Return the partial dependence of the most important genes that are numbers."""
    figures = []
    for name, curves in entry["dependence"].items():
        weights = entry["importance"][name]["genes"]
        numbers = [gene for gene in curves if not isinstance(curves[gene][0][0], str)]
        chosen = sorted(numbers, key=lambda gene: -(weights[gene] or [0])[0])[:MOST_PANELS]
        panels = {
            gene: {"": tuple(list(column) for column in zip(*curves[gene], strict=True))}
            for gene in chosen
        }
        if panels:
            up = "OA" if name == ACCURACY else "OA minus mean of the size"
            svg = draw_lines(panels, ("value of the gene", up))
            title = f"{table}: partial dependence of {name}"
            figures.append(Figure(title, svg, f"{title} on {', '.join(chosen)}", wide=True))
    return figures


def _labels(table: str, dependence: Mapping[str, Any]) -> list[FactTable]:
    """Return the partial dependence on genes whose values are labels, a row a label."""
    genes = [gene for gene, curve in dependence[ACCURACY].items() if isinstance(curve[0][0], str)]
    rows = [
        [f"{gene} {dependence[ACCURACY][gene][place][0]}"]
        + [cell(curves[gene][place][1:], 4) for curves in dependence.values()]
        for gene in genes
        for place in range(len(dependence[ACCURACY][gene]))
    ]
    title = f"{table}: partial dependence on labels"
    return [FactTable(title, ("value of the gene", *dependence), rows)] if rows else []


def _map(table: str, rho: Mapping[str, Mapping[str, float | None]]) -> list[Figure]:
    genes = list(next(iter(rho.values())))
    if not genes:
        return []
    values = np.array([[row[gene] for gene in genes] for row in rho.values()], np.float64)
    svg = draw_heat_map(list(rho), genes, values)
    best = max(genes, key=lambda gene: abs(rho[ACCURACY][gene] or 0))
    about = (
        f"Spearman's rho of genes; that of {best} with accuracy is {rounded(rho[ACCURACY][best])}"
    )
    return [Figure(f"{table}: Spearman's rho of genes with accuracy and scores", svg, about)]
