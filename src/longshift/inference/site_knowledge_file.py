"""What is kept with a model about new sites: new_site.json (numbers) and new_site.safetensors (features)."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError
from longshift.inference.site_estimate import HeldOutSite, SiteKnowledge
from longshift.inference.site_signals import Reference, Signals
from longshift.inference.sure_rule import SureRule
from longshift.io import file_hash, read_sealed, replacing, write_sealed
from longshift.metrics import FeatureSummary

NUMBERS, FEATURES = "new_site.json", "new_site.safetensors"
SCHEMA = 2


def write_knowledge(folder: Path, knowledge: SiteKnowledge | None, weights: str) -> None:
    """Write the two files for the model with this hash of its weights; without knowledge, remove old ones.

    The features come first, so that numbers never stand without them.
    """
    if knowledge is None:
        for name in (NUMBERS, FEATURES):
            (folder / name).unlink(missing_ok=True)
        return
    from safetensors.numpy import save_file

    reference = knowledge.reference
    names = list(reference.sites)
    means = np.stack([reference.sites[name].mean for name in names]).astype(np.float32)
    prototypes = reference.prototypes.astype(np.float32)
    with replacing(folder / FEATURES) as temporary:
        kept = {"means": means, "prototypes": prototypes, **_memory(reference.seen, reference.seen_labels)}
        save_file(kept, temporary)
    write_sealed(
        folder / NUMBERS,
        {
            "schema": SCHEMA, "weights": weights, "features": file_hash(folder / FEATURES),
            "held_out": [asdict(site) for site in knowledge.held_out],
            "reference": {
                "accuracy": reference.accuracy, "confidence": reference.confidence, "threshold": reference.threshold,
                "usual": reference.usual,
                "sites": [
                    {"site": name, "variance": reference.sites[name].variance, "n": reference.sites[name].n}
                    for name in names
                ],
            },
            "sure": asdict(knowledge.sure) if knowledge.sure else None,
        },
    )  # fmt: skip


def read_knowledge(folder: Path, weights: str, classes: int) -> SiteKnowledge | None:
    """What is kept with the model with these weights and so many classes; None if nothing is, as after `train`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = folder / NUMBERS
    if not path.exists():
        return None
    try:
        value = read_sealed(path)
        if value["schema"] != SCHEMA:
            raise ValueError(f"expected schema {SCHEMA}, got {value['schema']!r}")
        if value["weights"] != weights:
            raise ValueError("expected numbers of the model next to it, got those of another one")
        if value["features"] != file_hash(folder / FEATURES):
            raise ValueError(f"expected the {FEATURES} that was written with it, got another one")
        held = TypeAdapter(tuple[HeldOutSite, ...]).validate_json(json.dumps(value["held_out"]))
        sure = TypeAdapter(SureRule | None).validate_python(value["sure"])
        arrays = load_file(folder / FEATURES)
        kept = value["reference"]
        summaries = {
            str(row["site"]): FeatureSummary(mean.astype(np.float64), float(row["variance"]), int(row["n"]))
            for row, mean in zip(kept["sites"], arrays["means"], strict=True)
        }
        reference = Reference(
            float(kept["accuracy"]), float(kept["confidence"]),
            None if kept["threshold"] is None else float(kept["threshold"]),
            summaries, arrays["prototypes"].astype(np.float64), arrays["seen"].astype(np.float64),
            arrays["seen_labels"], float(kept["usual"]),
        )  # fmt: skip
        knowledge = SiteKnowledge(held, reference, sure)
        if wrong := _mistakes(knowledge, classes):
            raise ValueError("; ".join(wrong))
    except (
        LongshiftError,
        KeyError,
        TypeError,
        ValueError,
        OSError,
        AttributeError,
        SafetensorError,
    ) as error:
        raise LongshiftError(
            f"{path} or {FEATURES} next to it is damaged: {error}. Run the same `longshift fit` command again to write "
            "both, or remove both to predict without an estimate."
        ) from error
    return knowledge


def _mistakes(knowledge: SiteKnowledge, classes: int) -> list[str]:
    """Values that no fit writes."""
    reference, signals = knowledge.reference, [site.signals for site in knowledge.held_out]
    shares = [reference.accuracy, reference.confidence, *(site.accuracy for site in knowledge.held_out)]
    shares += [share for found in signals for share in _shares(found)]
    if knowledge.sure:
        shares += [knowledge.sure.threshold, knowledge.sure.accuracy, knowledge.sure.coverage]
    lengths = [reference.usual, *(summary.variance for summary in reference.sites.values())]
    lengths += [distance for found in signals for distance in found.distances.values()]
    widths = {
        reference.seen.shape[1:],
        reference.prototypes.shape[1:],
        *(summary.mean.shape for summary in reference.sites.values()),
    }
    absent = np.isnan(reference.prototypes).all(axis=-1)  # a class without samples has no mean
    labels = reference.seen_labels
    counts = [found.n for found in signals] + [summary.n for summary in reference.sites.values()]
    checks = {
        "expected held-out sites": bool(signals),
        "expected training sites": bool(reference.sites),
        "expected a distance to each training site": all(found.distances for found in signals),
        "expected shares from 0 to 1": all(0 <= share <= 1 + 1e-9 for share in shares),
        "expected finite distances": all(0 <= length < math.inf for length in lengths),
        "expected finite estimates": all(math.isfinite(found.difference) for found in signals),
        "expected samples": min(counts, default=0) >= 1 and len(reference.seen) >= 1,
        "expected features of one length": reference.seen.ndim == 2 and len(widths) == 1,
        "expected a label of each known sample": reference.seen_labels.shape == reference.seen.shape[:1],
        "expected labels of the model's classes": bool(((labels >= 0) & (labels < classes)).all()),
        f"expected a class mean for each of {classes} classes": reference.prototypes.shape[:1] == (classes,),
        "expected finite class means": not absent.all() and bool(np.isfinite(reference.prototypes[~absent]).all()),
        "expected finite features": bool(np.isfinite(reference.seen).all()),
    }
    return [text for text, good in checks.items() if not good]


def _shares(signals: Signals) -> tuple[float, ...]:
    return (signals.confidence, signals.thresholded, signals.agreement, signals.dispersity, signals.unlike)


def read_memory(folder: Path) -> tuple[FloatArray, IntArray] | None:
    """Features and labels of known samples that are kept with the model in a folder; None if there are none."""
    from safetensors.numpy import load_file

    path = folder / FEATURES
    if not path.exists():
        return None
    try:
        arrays = load_file(path)
        return arrays["seen"].astype(np.float64), arrays["seen_labels"].astype(np.int64)
    except Exception as error:  # safetensors has errors of its own
        raise LongshiftError(f"{path} is damaged: {error}. Remove it to continue without known samples.") from error


def write_memory(folder: Path, features: FloatArray, labels: IntArray) -> None:
    """Keep features and labels of known samples with a model that has no estimate for new sites."""
    from safetensors.numpy import save_file

    with replacing(folder / FEATURES) as temporary:
        save_file(_memory(features, labels), temporary)


def _memory(features: FloatArray, labels: IntArray) -> dict[str, npt.NDArray[Any]]:
    half = np.abs(features).max(initial=0) < np.finfo(np.float16).max
    return {"seen": features.astype(np.float16 if half else np.float32), "seen_labels": labels.astype(np.int64)}
