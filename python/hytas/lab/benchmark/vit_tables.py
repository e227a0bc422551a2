"""Published tables of vision transformers by name: OoD-ViT-NAS and ViT-Bench-101.

Sources: Ho et al. (NeurIPS 2024), evaluated with the weights of AutoFormer's supernets on ImageNet;
Wei et al. (Auto-Prox, AAAI 2024), trained from scratch on small sets. The files are read as they
were published: JSON, and a list saved by torch.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hytas.data.datasets import RemoteFile, fetch
from hytas.errors import InputError
from hytas.files import csv_text, parse_json, write_text
from hytas.lab.analysis.size import Size
from hytas.lab.analysis.tables import TARGET, RankingTable, remote_file
from hytas.spaces.checks import check_listed
from hytas.spaces.costs import cost
from hytas.spaces.genes import gene_names
from hytas.spaces.keys import architecture_key
from hytas.spaces.shape import ImageShape

# Pinned to commits of the authors' repositories, so the content cannot change.
_OOD = (
    "https://raw.githubusercontent.com/vovantuan1999a/OoD-ViT-NAS/"
    "037c8e0aeb053759cbbdd82c9bdab2dfb424aaa2/architecture_infors"
)
_BENCH = (
    "https://raw.githubusercontent.com/lliai/Auto-Prox-AAAI24/"
    "90ed458eff6948a6f0d23e440a8d21bbec50d091/gt_results"
)


_OOD_SHA256 = {
    "tiny": "5e07b49782d4f808c81fa565bcff5432293f832b8822224469f69edb380a1e70",
    "small": "d70fb30822848d71ce88efcff071973dce7f2256bc1a5eb663fcc138ca6ee789",
    "base": "b7ab49e1411c890f4372a50552c98b7589e75e66b4b42274738a1e07e2cc03ff",
}
_BENCH_SHA256 = {
    "autoformer": "712ad277546d9f7f565ce07885be7e0b98dcd8d0724fdd1120f595b517436eca",
    "autoformer_2": "05f5df6a41f338fb5f47eafebfc8758c75e451606856b278ccda1c60b26e7bca",
    "pit": "bdda89841d4105f99ab759e3243e7a2402929ba7a8430dac12a50256aa533bb2",
}


VIT_TABLES: dict[str, RemoteFile] = {
    **{
        f"ood-vit-nas-{size}": remote_file(
            _OOD, f"1k_Vit_Architecture_from_AutoFM_{size}.json", checksum
        )
        for size, checksum in _OOD_SHA256.items()
    },
    **{
        f"vit-bench-101-{space.replace('_', '-')}": remote_file(_BENCH, f"gt_{space}.pth", checksum)
        for space, checksum in _BENCH_SHA256.items()
    },
}
"""Name of a table -> its file."""
VIT_SUFFIXES = (".json", ".pth")
_SHAPE = ImageShape(3, 1000, 224)
"""Of the images that the networks were made for; it gives their parameters."""
_SPACES = (
    *("autoformer-tiny", "autoformer-small", "autoformer-base"),
    *("pit-tiny", "pit-xs", "pit-small"),
)
_ALIASES = {"layer_num": "depth", "hidden_dim": "embed_dim"}


def vit_table(
    source: str | Path, *, space: str | None = None, accuracy: str | None = None
) -> RankingTable:
    """Read a table of vision transformers.

    Args:
        source: a key of `VIT_TABLES`, which is downloaded once; or a file in one of their formats,
            such as the authors' merged file of all sets of OoD-ViT-NAS.
        space: of its networks; None takes the first built-in one that has the first of them.
        accuracy: the figure that is the OA; None takes the first that most networks have.
    """
    named = str(source) in VIT_TABLES and not Path(source).exists()
    path = fetch(VIT_TABLES[str(source)]) if named else Path(source)
    networks: dict[str, tuple[dict[str, Any], dict[str, float]]] = {}
    for number, (genes, figures) in enumerate(_rows(path), start=1):
        architecture, space = _architecture(f"{path}, network {number}", genes, space)
        networks.setdefault(architecture_key(architecture), (architecture, figures))
    names = list(dict.fromkeys(name for _, figures in networks.values() for name in figures))
    columns = {
        name: np.array([figures.get(name, math.nan) for _, figures in networks.values()])
        for name in names
    }
    chosen = accuracy or max(names, key=lambda name: np.isfinite(columns[name]).sum(), default="")
    if chosen not in columns:
        raise InputError("accuracy", accuracy, f"must be one of {', '.join(names) or '(none)'}")
    measured = np.flatnonzero(np.isfinite(columns[chosen]))
    if len(measured) < 3:
        raise InputError(
            path, rule=f"{len(measured)} networks have {chosen}: at least 3 are needed"
        )
    architectures = [architecture for architecture, _ in networks.values()]
    kept = tuple(architectures[at] for at in measured)
    params = np.array([cost(each, _SHAPE, "params") for each in kept])
    return RankingTable(
        str(source) if named else path.stem,
        kept,
        columns[chosen][measured] / 100.0,
        {},
        Size(params, "genes, for 224 x 224 RGB images and 1000 classes"),
        (f"{TARGET} is {chosen}, in percent",),
        {name: values[measured] for name, values in columns.items()},
    )


def write_vit_table(path: Path, table: RankingTable) -> None:
    """Write genes, OA and parameters as a CSV table that names its space."""
    assert table.size is not None
    genes = [name for name in table.architectures[0] if name != "space"]
    rows = [["space", *genes, TARGET, "params"]]
    columns = zip(table.architectures, table.accuracy, table.size.params, strict=True)
    for each, reached, params in columns:
        fields = (json.dumps(each[name]) for name in genes)
        rows.append([each["space"], *fields, f"{reached:.6f}", str(int(params))])
    write_text(path, csv_text(rows))


def _rows(path: Path) -> Iterator[tuple[Mapping[str, Any], dict[str, float]]]:
    """Yield genes and figures of each network of a file."""
    content = _torch_list(path) if path.suffix == ".pth" else parse_json(path.read_bytes(), path)
    items = list(content.values()) if isinstance(content, dict) else content
    if not isinstance(items, list) or not items:
        raise InputError(path, rule="is not a table of networks")
    for number, item in enumerate(items, start=1):
        genes = item.get("net_setting", item.get("arch")) if isinstance(item, dict) else None
        if not isinstance(genes, dict):
            rule = "has no genes (net_setting or arch)"
            raise InputError(f"{path}, network {number}", rule=rule)
        measured = item.get("performance", {k: v for k, v in item.items() if k.endswith("_acc")})
        yield genes, dict(_figures(measured))


def _torch_list(path: Path) -> Any:
    import torch

    try:
        return torch.load(path, weights_only=True)  # executes nothing
    except FileNotFoundError:
        raise
    except Exception:  # whatever a damaged archive leads to
        raise InputError(path, rule="is not a list saved by torch, or is damaged") from None


def _figures(values: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of nested mappings: "clean", "imagenet-c:fog:5"."""
    if isinstance(values, dict):
        for key, inner in values.items():
            # All was measured on ImageNet or sets made of it, so the level says nothing.
            inside = name if str(key) == "Imagenet" else f"{name}:{key}".strip(":").lower()
            yield from _figures(inner, inside)
    elif isinstance(values, int | float) and not isinstance(values, bool):
        yield name, float(values)


def _architecture(
    where: str, genes: Mapping[str, Any], space: str | None
) -> tuple[dict[str, Any], str]:
    """Return an architecture, and the space that has it."""
    own = {_ALIASES.get(name, name): value for name, value in genes.items()}
    width = own.get("embed_dim")
    if isinstance(width, list) and len(set(map(str, width))) == 1:
        own["embed_dim"] = width[0]
    reasons = []
    for name in (space,) if space else _SPACES:
        architecture = {"space": name, **{gene: own.get(gene) for gene in gene_names(name)}}
        try:
            check_listed(architecture, _SHAPE)
            return architecture, name
        except InputError as error:
            reasons.append(str(error))
    rule = f"fits none of the spaces {', '.join(_SPACES)}"
    if space:
        rule = f"does not fit the space {space}"
    raise InputError(where, rule=f"{rule}: {' '.join(reasons[0].split())}")
