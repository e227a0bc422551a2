"""The stages of a run. Each does nothing that its folder already holds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hytas.data import PatchReader, overlap_fraction
from hytas.deploy import ClassMap, DeployedModel, classify_scene
from hytas.export import (
    FORMATS,
    Evidence,
    Parity,
    check_formats,
    check_parity,
    describe,
    export_checked,
    export_formats,
)
from hytas.metrics import accuracy_report, summarise
from hytas.models.table import patch_size_of
from hytas.proxies import (
    Evaluator,
    ProxySpec,
    base_proxies,
    fitness,
    parse_proxies,
    proxy_batch,
)
from hytas.run.context import RunContext
from hytas.run.earlier import digest_of, read_earlier
from hytas.run.folder import RunFolder, read_json, write_json
from hytas.run.pareto import write_front
from hytas.run.race import finalist_count, race
from hytas.run.report import Report
from hytas.run.weights import TrainedModel, load_weights, save_weights
from hytas.search import Evaluation, EvaluationStore, Retraining, SearchSettings, search
from hytas.train import DivergedError, retrain

Architecture = dict[str, Any]
PARITY_BATCH = 64
MAIN_FORMATS = ("onnx", "torchscript")  # what every run ends with


def check_search(context: RunContext, folder: RunFolder) -> None:
    """Refuse, before any work, what the end of the search could not do; nothing of one that ended.

    Raises:
        InputError: a race without validation pixels, or earlier runs that cannot be read.
    """
    finalist_count(context)
    if folder.architecture.exists():
        return
    read_earlier(context.config.learn_from, context.space.name, context.scene, context.split)


def search_stage(context: RunContext, folder: RunFolder, report: Report) -> Architecture:
    """The best architecture by the proxy; `evaluations.sqlite`, `architecture.json`."""
    if folder.architecture.exists():
        return read_json(folder.architecture)
    config = context.config
    assert context.feasible is not None  # a run without a budget has its architecture
    specs = parse_proxies(config.proxy)
    evaluator = Evaluator(
        config.proxy,
        context.shape,
        batch=_proxy_batch(context, specs),
        device=str(context.device),
        seed=config.seed,
    )

    def leading(evaluations: Sequence[Evaluation]) -> NDArray[np.float64]:
        return fitness(specs[0], [item.scores for item in evaluations])

    racing = finalist_count(context) > 1
    if not racing and config.finalists is None:
        report.line("no race: the split has no validation pixels; the proxy's first choice wins")
    earlier = read_earlier(config.learn_from, context.space.name, context.scene, context.split)
    if config.learn_from:
        folder.claim_earlier(digest_of(earlier))
    settings = SearchSettings(
        config.selection,
        config.population,
        config.generations,
        config.seed,
        chunk=max(SearchSettings.chunk, evaluator.chunk),
        minimised=config.minimised,
    )
    with EvaluationStore(folder.evaluations) as store:
        result = search(
            context.feasible,
            evaluator,
            leading,
            settings,
            store,
            progress=report.search,
        )
        winner = result.winner
        if racing:
            ranked = _ranked(store.evaluations(), leading)
            winner, learnt = race(context, ranked, store, report, earlier)
            if learnt:
                write_json(folder.predictor, learnt)
    if result.exhausted:
        report.line(f"every architecture that fits was scored: {result.evaluated}")
    if result.failed:
        report.line(f"{result.failed} of {result.evaluated} architectures got no score")
    if config.minimised:
        write_front(folder.path, result.front, config.minimised)
        report.line(f"{len(result.front)} architectures on the front: pareto.csv, pareto.png")
    write_json(folder.architecture, winner.architecture)
    return winner.architecture


def _ranked(
    items: Sequence[Evaluation],
    leading: Callable[[Sequence[Evaluation]], NDArray[np.float64]],
) -> list[Evaluation]:
    """Those with a score, the best first; the earlier one of equals."""
    scored = [(value, item) for value, item in zip(leading(items), items, strict=True)]
    valid = [pair for pair in scored if not np.isnan(pair[0])]
    return [item for _, item in sorted(valid, key=lambda pair: (-pair[0], pair[1].id))]


def retrain_stage(
    context: RunContext, folder: RunFolder, architecture: Architecture, report: Report
) -> TrainedModel:
    """The architecture trained; `weights.safetensors`.

    Its pixels are those of training and, unless they are kept apart, of validation: nothing is left
    to choose but the weights, and where pixels are few each is worth more in the training.
    """
    if folder.weights.exists():
        return load_weights(folder.weights)
    config = context.config
    network = context.network(architecture)
    training, validation = context.retraining_pixels
    try:
        result = retrain(
            network,
            context.labelled(training),
            context.labelled(validation),
            config.recipe,
            seed=config.seed,
            device=context.device,
            checkpoint=folder.checkpoint,
            progress=report.epoch,
        )
    except DivergedError:
        folder.checkpoint.unlink(missing_ok=True)  # the folder is free for another recipe
        raise
    card = describe(context.scene, context.preprocessing, architecture, context.shape)
    model = TrainedModel(network, card, result.to_dict())
    save_weights(folder.weights, model)
    folder.checkpoint.unlink(missing_ok=True)
    return model


def export_stage(
    context: RunContext,
    folder: RunFolder,
    model: TrainedModel,
    report: Report,
) -> Parity:
    """The model as files, each compared with torch on every test pixel; `model.onnx`, `model.pt`.

    Raises:
        ExportError: a file computes something else than torch does.
    """
    sensor_model = model.sensor_model()
    # Compared before they get their names: a file under its final name has passed.
    staging = folder.path / ".export"
    staging.mkdir(exist_ok=True)
    try:
        files = export_formats(sensor_model, staging, model.card, MAIN_FORMATS)
        parity = check_parity(sensor_model, files, _batches(context, model.card.patch_size, report))
        for name, file in files.items():
            file.replace(folder.path / FORMATS[name].file)
    finally:
        for file in staging.iterdir():
            file.unlink()
        staging.rmdir()
    return parity


def further_formats_stage(
    context: RunContext,
    folder: RunFolder,
    model: TrainedModel,
    formats: Sequence[str],
    force: bool,
) -> dict[str, dict[str, Any]]:
    """Formats beside ONNX and TorchScript, each judged on the test pixels before it has its name.

    Raises:
        InputError: an unknown format.
        ExportError: a format fails its check.
    """
    names = [name for name in check_formats(formats) if name not in MAIN_FORMATS]
    split = context.split
    evidence = Evidence(
        model.sensor_model(),
        context.scene.cube,
        model.card.patch_size,
        split.test,
        context.targets(split.test),
        split.train,
    )
    return export_checked(folder.path, model.card, names, evidence, force=force)


def _overlap(context: RunContext, architecture: Mapping[str, Any]) -> float:
    """Share of the test pixels inside what the model sees around a pixel that it learnt from."""
    side, (learnt, _) = patch_size_of(architecture, context.shape), context.retraining_pixels
    return overlap_fraction(context.scene.labels.shape, learnt, context.split.test, side)


def evaluate_stage(
    context: RunContext, folder: RunFolder, model: TrainedModel, parity: Parity
) -> dict[str, Any]:
    """Accuracy of the ONNX model on the test pixels; `metrics.json`."""
    truth = context.targets(context.split.test)
    metrics = {
        "test": accuracy_report(truth, parity.predicted, model.card.class_names, parity.confidence),
        "parity": parity.to_dict(),
        "split": {
            "kind": context.split.kind,
            "train": len(context.split.train),
            "validation": len(context.split.validation),
            "test": len(context.split.test),
            "overlap": context.split.overlap,
            "overlap_of": context.split.patch_size,
            "overlap_of_model": _overlap(context, model.card.architecture),
            "notes": list(context.split.notes),
        },
        "costs": context.space.cost(dict(model.card.architecture)),
        "seed": context.config.seed,
        "device": str(context.device),
        "training": dict(model.training),
    }
    if folder.metrics.exists():  # exported again: what is known of the trainings still holds
        before = read_json(folder.metrics)
        metrics |= {name: before[name] for name in ("seeds", "device") if name in before}
    write_json(folder.metrics, metrics)
    return metrics


def record_stage(
    context: RunContext, folder: RunFolder, trained: RunFolder, architecture: Architecture
) -> None:
    """The retraining in the folder `trained`, in the `evaluations.sqlite` of `folder`."""
    metrics = read_json(trained.metrics)
    test = metrics["test"]
    with EvaluationStore(folder.evaluations) as store:
        store.add_retraining(
            Retraining(
                architecture,
                context.config.seed,
                len(metrics["training"]["history"]),
                len(context.retraining_pixels[0]),
                test["OA"],
                test["AA"],
                test["kappa"],
            )
        )


def seeds_stage(
    context: RunContext, folder: RunFolder, architecture: Architecture, report: Report
) -> None:
    """The winner retrained with further seeds, on the same pixels; "seeds" in `metrics.json`.

    Every one is exported, checked and kept in a folder of its own; the first seed is what ships.
    """
    first = read_json(folder.metrics)
    config = context.config
    wanted = [config.seed + number for number in range(config.seeds)]
    summarised = first.pop("seeds", {}).get("of", wanted[:1])  # none is of the first seed alone
    if summarised == wanted:
        return
    if config.seeds == 1:
        write_json(folder.metrics, first)
        return
    reports = [first["test"]]
    for seed in wanted[1:]:
        inner = folder.of_seed(seed)
        own = replace(context, config=replace(config, seed=seed))
        if not inner.metrics.exists():
            report.line(f"retraining with seed {seed}")
            model = retrain_stage(own, inner, architecture, report)
            evaluate_stage(own, inner, model, export_stage(own, inner, model, report))
        record_stage(own, folder, inner, architecture)
        reports.append(read_json(inner.metrics)["test"])
    write_json(folder.metrics, {**first, "seeds": {"of": wanted, **summarise(reports)}})


def map_stage(context: RunContext, folder: RunFolder, report: Report) -> ClassMap:
    """The whole scene classified by the ONNX file, beside the ground truth; `map.png`."""
    from hytas.deploy.picture import draw_map

    torch.cuda.empty_cache()  # what torch keeps for reuse, onnxruntime could not have
    deployed = DeployedModel.load(folder.onnx)
    scene = context.scene
    pixels_a_row = scene.width
    result = classify_scene(
        deployed,
        scene.cube,
        nodata=scene.nodata,
        progress=lambda done, total: report.pixels(
            "classify", done * pixels_a_row, total * pixels_a_row
        ),
    )
    ids = np.concatenate([[0], np.asarray(scene.class_ids)]).astype(np.int32)
    draw_map(folder.map, result.labels, deployed.card, truth=ids[scene.labels])
    return result


def _proxy_batch(
    context: RunContext, specs: Sequence[ProxySpec]
) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
    """The labelled patches that the proxies look at, if one of them does."""
    if not any(spec.proxy.needs_data for spec in base_proxies(specs)):
        return None
    config = context.config
    return proxy_batch(
        context.scene, context.split.train, context.preprocessing, config.patch_size, config.seed
    )


def _batches(context: RunContext, patch_size: int, report: Report) -> Iterator[NDArray[Any]]:
    pixels = context.split.test
    read = PatchReader(context.scene.cube, patch_size)
    for start in range(0, len(pixels), PARITY_BATCH):
        chosen = pixels[start : start + PARITY_BATCH]
        yield read(chosen)
        report.pixels("check", start + len(chosen), len(pixels))
