"""Predictions for new images or vectors: class, calibrated probability, the next best, and whether to trust it."""

from __future__ import annotations

import csv
import io
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from longshift.errors import UsageError
from longshift.inference.loading import LoadedModel, load_model
from longshift.inference.model_outputs import Outputs, array_outputs, collect_outputs
from longshift.inference.prediction_inputs import expand_inputs, listed_paths
from longshift.inference.site_doubt import class_excess
from longshift.inference.site_estimate import FEWEST, SiteEstimate, estimate_site, no_estimate, odd_mix
from longshift.inference.site_signals import read_signals
from longshift.inference.training_inputs import training_words
from longshift.progress import Tick, silent
from longshift.text import csv_cell

UNSURE = 0.5
ALL = 1.0  # the threshold that is told if all predictions are unsure


@dataclass(frozen=True)
class Prediction:
    """One input with its `top` classes, most probable first."""

    path: str
    top: tuple[tuple[str, float], ...]
    unsure: bool

    @property
    def label(self) -> str:
        """The most probable class."""
        return self.top[0][0]

    @property
    def probability(self) -> float:
        """Its calibrated probability."""
        return self.top[0][1]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "path": self.path,
            "class": self.label,
            "probability": self.probability,
            "unsure": self.unsure,
            "top": [{"class": name, "probability": p} for name, p in self.top],
        }


@dataclass(frozen=True)
class Predictions:
    """All predictions, the inputs that could not be read (path, reason), and a warning about the model."""

    rows: tuple[Prediction, ...]
    skipped: tuple[tuple[str, str], ...]
    warning: str = ""
    unsure_below: float = UNSURE
    sure_accuracy: float | None = None  # of the predictions that are not unsure, at the held-out sites of the fit
    estimate: SiteEstimate | None = None  # the accuracy to expect at this site
    no_estimate: str = ""  # why there is none, if one could be expected
    odd_mix: str = ""  # on a class that is predicted far more often than it occurs at any training site
    seen: str = ""  # on inputs that the model was trained on
    all_unsure: str = ""  # why no threshold of the fit is used and all predictions are unsure
    outputs: Outputs | None = field(default=None, compare=False, repr=False)

    @property
    def site_warnings(self) -> list[str]:
        """Why the estimate for this site is unreliable, in sentences; none for a usual site."""
        return [*filter(None, (self.seen, self.estimate.warning() if self.estimate else "", self.odd_mix))]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **({"warning": self.warning} if self.warning else {}),
            **({"site": self.estimate.to_json()} if self.estimate else {}),
            **({"no_estimate": self.no_estimate} if self.no_estimate else {}),
            **({"odd_class_mix": self.odd_mix} if self.odd_mix else {}),
            **({"seen_in_training": self.seen} if self.seen else {}),
            "unsure_below": self.unsure_below,
            **({"all_unsure": self.all_unsure} if self.all_unsure else {}),
            **({"sure_accuracy": self.sure_accuracy} if self.sure_accuracy is not None else {}),
            "predictions": [row.to_json() for row in self.rows],
            "skipped": [{"path": path, "reason": reason} for path, reason in self.skipped],
        }

    def to_csv(self, raw: bool = False) -> str:
        """One line per input: path, class, probability, unsure, then class_2, probability_2, ...

        Texts that a spreadsheet would run as formulas get a quote in front, unless `raw`.
        """
        top = len(self.rows[0].top) if self.rows else 1
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        extra = [name for k in range(2, top + 1) for name in (f"class_{k}", f"probability_{k}")]
        writer.writerow(["path", "class", "probability", "unsure", *extra])
        for row in self.rows:
            rest = [value for name, p in row.top[1:] for value in (csv_cell(name, raw), f"{p:.6f}")]
            unsure = "yes" if row.unsure else "no"
            texts = (csv_cell(row.path, raw), csv_cell(row.label, raw))
            writer.writerow([*texts, f"{row.probability:.6f}", unsure, *rest])
        return text.getvalue()


def predict(
    model: LoadedModel | Path | str,
    inputs: Iterable[str | os.PathLike[str]] | npt.NDArray[Any],
    *,
    top_k: int = 3,
    unsure: float | None = None,
    device: str = "auto",
    threads: int = 0,
    tick: Tick = silent,
    keep_outputs: bool = False,
) -> Predictions:
    """Predict images or, for a model of vectors, the rows of .npz and .parquet files.

    Args:
        model: A loaded model, or the folder of a run or fit.
        inputs: Files, folders or patterns ("new_site/**/*.png"); or an array: vectors (N, length), or images
            (N, height, width, 3) of type uint8.
        top_k: Number of classes per prediction.
        unsure: A prediction is unsure if its calibrated probability is below this. By default, it is the lowest one
            above which 90% were right at the sites that `fit` held out or, if none reaches that, the best one; if
            not even half of the predictions above the best one were right, all are unsure. It is 0.5 for a model
            without held-out sites.
        device: Device for a folder: "auto", "cpu", "cuda" or "cuda:1".
        threads: Batches that are computed at the same time on the CPU; 0: one for vectors, one per processor for
            images. The predictions do not depend on it.
        tick: Function that is called once per input, for a progress bar.
        keep_outputs: Keep the logits and features of all inputs in `outputs`, which takes memory.

    Returns:
        The predictions in `rows`; inputs that cannot be read in `skipped`, with the reason; in `warning` whether the
        model was no better than guessing at unseen sites; in `seen` whether the inputs lie in the folder that it was
        trained on; and for a model of `fit`, in `estimate` the accuracy to expect at this site, from the predictions
        alone (in `no_estimate` why there is none), and in `sure_accuracy` the share of predictions above the default
        of `unsure` that were right at the held-out sites (in `all_unsure` why all predictions are unsure).

    Raises:
        LongshiftError: If the model cannot be loaded, or vectors are of another network than those of its training.
        TypeError: If the inputs are neither paths nor an array.

    Example:
        >>> found = longshift.predict("fits/hospitals", ["new_site/"])  # doctest: +SKIP
        >>> [(row.path, row.label, row.probability) for row in found.rows]  # doctest: +SKIP
    """
    loaded = model if isinstance(model, LoadedModel) else load_model(model, device=device)
    if top_k < 1:
        raise UsageError(f"expected top_k of 1 or more, got {top_k}")
    if unsure is not None and not 0 <= unsure <= 1:
        raise UsageError(f"expected unsure between 0 and 1, got {unsure}")
    if loaded.warning and loaded is not model:  # otherwise the caller has it in `model.warning`
        warnings.warn(loaded.warning, UserWarning, stacklevel=2)
    features = keep_outputs or loaded.knowledge is not None  # which compares them with those of the held-out sites
    seen = ""
    if isinstance(inputs, np.ndarray):
        outputs = array_outputs(loaded, inputs, threads, features)
    else:
        files = expand_inputs(listed_paths(inputs), loaded.info.vectors)
        seen = training_words(loaded, files)
        outputs = collect_outputs(loaded, files, tick, threads, features)
    rule = loaded.knowledge.sure if loaded.knowledge and unsure is None else None
    doubted = rule.why_all_unsure() if rule else ""
    if doubted:
        rule = None
    below = ALL if doubted else rule.threshold if rule else UNSURE if unsure is None else unsure
    least = math.inf if doubted else below  # a probability of 1 is unsure then, too
    rows = rank(outputs.names, outputs.probabilities(loaded.temperature), loaded.classes, top_k, least)
    most = class_excess(loaded.info.counts, outputs.logits.argmax(1).numpy())
    odd = odd_mix(loaded.classes, most, len(outputs.names))
    return Predictions(
        tuple(rows), outputs.skipped, loaded.warning, below, rule.accuracy if rule else None,
        estimate_from(loaded, outputs), no_estimate(loaded.knowledge, loaded.info.adapted, len(outputs.names)), odd,
        seen, doubted, outputs if keep_outputs else None,
    )  # fmt: skip


def estimate_from(model: LoadedModel, outputs: Outputs) -> SiteEstimate | None:
    """The accuracy to expect at the site of these outputs; None for few samples or without held-out sites."""
    if model.knowledge is None or outputs.features is None or len(outputs.names) < FEWEST:
        return None
    signals = read_signals(
        model.knowledge.reference, outputs.logits.numpy(), outputs.features.numpy(), model.temperature
    )
    most = class_excess(model.info.counts, outputs.logits.argmax(1).numpy())
    return estimate_site(model.knowledge, signals, most.excess)


def rank(
    names: Sequence[str], probabilities: Tensor, classes: Sequence[str], top_k: int, unsure: float
) -> list[Prediction]:
    """The best classes of each row."""
    values, order = probabilities.topk(min(top_k, len(classes)), dim=1)
    return [
        Prediction(name, tuple((classes[k], p) for k, p in zip(ks, ps, strict=True)), ps[0] < unsure)
        for name, ks, ps in zip(names, order.tolist(), values.tolist(), strict=True)
    ]
