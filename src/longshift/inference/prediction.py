"""Predictions for new images or vectors: class, calibrated probability, the next best, and whether to trust it."""

from __future__ import annotations

import csv
import io
import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longshift.data import DIGITS, sample_file, split_sample, vector_file
from longshift.errors import LongshiftError, UsageError
from longshift.inference.expected_accuracy import (
    LEAST,
    LEVEL,
    ODD,
    HeldOutSite,
    SiteEstimate,
    SureRule,
    class_excess,
    estimate_site,
    read_signals,
)
from longshift.inference.loading import LoadedModel, UnseenAccuracy, load_model
from longshift.inference.outputs import Outputs, array_outputs, collect_outputs, expand_inputs, listed_paths
from longshift.inference.site_adaptation import FEWEST, Adapt, SiteOffset, class_mix, site_offset
from longshift.progress import Tick, silent
from longshift.templates import render
from longshift.text import csv_cell
from longshift.training import RunFolder, Runtime, read_config

UNSURE = 0.5
VANISHED = 10  # expected samples of a class that is never predicted: a warning
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
class SeenInputs:
    """Inputs that lie where the model's training data were read from, and the training sites they are of."""

    sites: tuple[str, ...]
    inputs: int
    of: int  # inputs


@dataclass(frozen=True)
class DominantClass:
    """A class that is predicted far more often than it occurs at any training site."""

    name: str
    share: float  # of the predictions
    known: float  # highest share at any training site


@dataclass(frozen=True)
class Predictions:
    """All predictions, the inputs that could not be used (path, reason), and what to expect at this site."""

    rows: tuple[Prediction, ...]
    skipped: tuple[tuple[str, str], ...]
    unsure_below: float = UNSURE
    sure: SureRule | None = None  # the threshold of the fit, if it decides which predictions are unsure
    unseen: UnseenAccuracy | None = None  # of the model
    held_out: tuple[HeldOutSite, ...] = ()  # of its fit
    estimate: SiteEstimate | None = None  # the accuracy to expect at this site
    no_estimate: Literal["", "adapted", "few"] = ""  # why there is none, if one could be expected
    dominant: DominantClass | None = None
    seen: SeenInputs | None = None
    adapted: SiteOffset | None = None  # with strength 0: it stepped back; None: the model is not adapted to sites
    gain: float = 0.0  # accuracy that adapting gained at held-out sites
    vanished: tuple[str, ...] = ()  # classes that all training sites have and that are not predicted
    outputs: Outputs | None = field(default=None, compare=False, repr=False)

    @property
    def unsure(self) -> int:
        """Number of unsure predictions."""
        return sum(row.unsure for row in self.rows)

    @property
    def all_unsure(self) -> bool:
        """Whether all predictions are unsure because no threshold helped at the held-out sites."""
        return self.sure is not None and not self.sure.useful

    @property
    def sure_accuracy(self) -> float | None:
        """Share of the predictions above the threshold that were right at the held-out sites."""
        return self.sure.accuracy if self.sure and self.sure.useful else None

    @property
    def odd(self) -> bool:
        """Whether the site is unlike the held-out ones, so that their record says less about it."""
        return bool(self.dominant or self.vanished or (self.estimate and self.estimate.unreliable))

    @property
    def warning(self) -> str:
        """Why the model must not be used, by its record at unseen sites; "" if it may be."""
        return self.unseen.warning() if self.unseen else ""

    def warnings(self) -> list[str]:
        """Why an accuracy at this site is unreliable; none for a usual site."""
        return render("longshift.inference", "site_warnings.txt.j2", found=self).splitlines()

    def to_text(self, out: Path | None = None, page: Path | None = None) -> str:
        """The summary that `longshift predict` prints after the predictions, or after writing these files."""
        classes = Counter(row.label for row in self.rows).most_common(8)
        values = {"found": self, "classes": classes, "out": out, "page": page, "least": LEAST, "fewest": FEWEST}
        return render("longshift.inference", "predict.txt.j2", **values, level=LEVEL)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **({"warning": self.warning} if self.warning else {}),
            **({"site": self.estimate.to_json()} if self.estimate else {}),
            **({"no_estimate": self.no_estimate} if self.no_estimate else {}),
            **({"adapted": adapted_json(self.adapted) | {"gain": self.gain}} if self.adapted else {}),
            **({"dominant_class": asdict(self.dominant)} if self.dominant else {}),
            **({"vanished_classes": list(self.vanished)} if self.vanished else {}),
            **({"seen_in_training": asdict(self.seen)} if self.seen else {}),
            "unsure_below": self.unsure_below,
            "all_unsure": self.all_unsure,
            **({"sure_accuracy": self.sure_accuracy} if self.sure_accuracy is not None else {}),
            "predictions": [row.to_json() for row in self.rows],
            "skipped": [{"path": path, "reason": reason} for path, reason in self.skipped],
        }

    def to_csv(self) -> str:
        """One line per input: path, class, probability, unsure, then class_2, probability_2, ...

        Texts that a spreadsheet would run as formulas get a quote in front.
        """
        top = len(self.rows[0].top) if self.rows else 1
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        extra = [name for k in range(2, top + 1) for name in (f"class_{k}", f"probability_{k}")]
        writer.writerow(["path", "class", "probability", "unsure", *extra])
        for row in self.rows:
            rest = [value for name, p in row.top[1:] for value in (csv_cell(name), f"{p:.6f}")]
            unsure = "yes" if row.unsure else "no"
            texts = (csv_cell(row.path), csv_cell(row.label))
            writer.writerow([*texts, f"{row.probability:.6f}", unsure, *rest])
        return text.getvalue()


def predict(
    model: LoadedModel | Path | str,
    inputs: Iterable[str | os.PathLike[str]] | npt.NDArray[Any],
    *,
    top_k: int = 3,
    unsure: float | None = None,
    adapt: Adapt = "auto",
    reference: Iterable[str | os.PathLike[str]] | npt.NDArray[Any] | None = None,
    mix: Mapping[str, float] | None = None,
    device: str = "auto",
    threads: int = 0,
    cache: Path | None = None,
    tick: Tick = silent,
    keep_outputs: bool = False,
) -> Predictions:
    """Predict images or, for a model of vectors, the rows of .npz and .parquet files.

    Args:
        model: A loaded model, or the folder of a run or fit.
        inputs: Files, folders, patterns ("new_site/**/*.png"), or what `load_dataset` takes, without classes if it has
            none; or an array: vectors (N, length), or images
            (N, height, width, 3) of type uint8.
        top_k: Number of classes per prediction.
        unsure: A prediction is unsure if its calibrated probability is below this. By default, it is the lowest one
            above which 90 % were right at the sites that `fit` held out or, if none reaches that, the best one; if
            not even half of the predictions above the best one were right, all are unsure. It is 0.5 for a model
            without held-out sites.
        adapt: Whether to adapt the model to the site of the inputs, without labels: "auto" as its fit decided, "on" or
            "off". Needs at least 20 inputs of one site.
        reference: Other inputs of the same site to adapt with, for instance if there are few `inputs`.
        mix: Share of each class at the site, if it is known; it makes adapting much better.
        device: Device for a folder: "auto", "cpu", "cuda" or "cuda:1".
        threads: Batches that are computed at the same time on the CPU; 0: one for vectors, one per processor for
            images. The predictions do not depend on it.
        cache: Folder that keeps the features of a frozen network; by default $LONGSHIFT_CACHE.
        tick: Function that is called once per input, for a progress bar.
        keep_outputs: Keep the logits and features of all inputs in `outputs`, which takes memory.

    Returns:
        The predictions in `rows`; inputs that cannot be read, or whose outputs are not finite, in `skipped`, with the
        reason; in `warning` whether the model was no better than guessing at unseen sites; in `seen` whether the inputs
        lie in the folder that it was trained on; in `adapted` how it was adapted to this site; and for a model of
        `fit`, in `estimate` the accuracy to expect at this site, from the predictions alone (in `no_estimate` why there
        is none), and in `sure_accuracy` the share of predictions above the default of `unsure` that were right at the
        held-out sites.

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
    knowledge = loaded.knowledge
    features = keep_outputs or knowledge is not None  # which compares them with those of the held-out sites
    seen, runtime = None, Runtime(threads=threads, cache=cache)
    if not isinstance(inputs, np.ndarray):
        inputs = expand_inputs(listed_paths(inputs), loaded.info.vectors)
        seen = seen_inputs(loaded, inputs)
    outputs = _outputs(loaded, inputs, runtime, tick, features)
    offset = learn_offset(loaded, outputs if reference is None else _outputs(loaded, reference, runtime), adapt, mix)
    outputs = adapt_outputs(loaded, outputs, offset)
    rule = knowledge.sure if knowledge and unsure is None else None
    below = unsure_below(rule) if unsure is None else unsure
    least = math.inf if rule and not rule.useful else below  # a probability of 1 is unsure then, too
    few = len(outputs.names) < FEWEST
    return Predictions(
        tuple(rank(outputs.names, outputs.probabilities(loaded.temperature), loaded.classes, top_k, least)),
        outputs.skipped,
        below,
        rule,
        loaded.unseen,
        knowledge.held_out if knowledge else (),
        estimate_from(loaded, outputs),
        "adapted" if loaded.info.adapted else "few" if knowledge and few else "",
        None if few else dominant_class(loaded, outputs),
        seen,
        offset,
        knowledge.adaptation.gain if knowledge and knowledge.adaptation else 0.0,
        vanished_classes(loaded, outputs),
        outputs if keep_outputs else None,
    )


def unsure_below(rule: SureRule | None) -> float:
    """The probability below which predictions are unsure, by the record of a fit."""
    return UNSURE if rule is None else rule.threshold if rule.useful else ALL


def _outputs(
    model: LoadedModel, inputs: Iterable[str | os.PathLike[str]] | npt.NDArray[Any], runtime: Runtime,
    tick: Tick = silent, features: bool = False,
) -> Outputs:  # fmt: skip
    if isinstance(inputs, np.ndarray):
        return array_outputs(model, inputs, runtime, features)
    return collect_outputs(model, expand_inputs(listed_paths(inputs), model.info.vectors), tick, runtime, features)


def learn_offset(
    model: LoadedModel, outputs: Outputs, adapt: Adapt = "auto", mix: Mapping[str, float] | None = None
) -> SiteOffset | None:
    """What to add to the logits at the site of these outputs; None where the model is not adapted to sites."""
    learned = model.knowledge.adaptation if model.knowledge else None
    if adapt == "off" or (learned is None and adapt == "auto" and mix is None):
        return None
    if learned is None:
        raise LongshiftError(f"{model.folder} cannot be adapted to a site: that needs a model of `longshift fit`.")
    shares = class_mix(model.classes, mix) if mix else None
    if adapt == "on":
        learned = replace(learned, helps=True)
    if not (learned.helps or mix) or not len(outputs.names):
        return None
    return site_offset(learned, outputs.logits.double().numpy() / model.temperature, shares)


def adapt_outputs(model: LoadedModel, outputs: Outputs, offset: SiteOffset | None) -> Outputs:
    """The outputs with the offset of their site."""
    if offset is None:
        return outputs
    values = torch.from_numpy(offset.values * model.temperature).to(outputs.logits.dtype)
    return replace(outputs, logits=outputs.logits + values)


def adapted_json(offset: SiteOffset) -> dict[str, Any]:
    """Plain values."""
    return {"images": offset.n, "strength": offset.strength, "class_mix": offset.mix.tolist()}


def rank(
    names: Sequence[str], probabilities: Tensor, classes: Sequence[str], top_k: int, unsure: float
) -> list[Prediction]:
    """The best classes of each row."""
    values, order = probabilities.topk(min(top_k, len(classes)), dim=1)
    return [
        Prediction(name, tuple((classes[k], p) for k, p in zip(ks, ps, strict=True)), ps[0] < unsure)
        for name, ks, ps in zip(names, order.tolist(), values.tolist(), strict=True)
    ]


def estimate_from(model: LoadedModel, outputs: Outputs) -> SiteEstimate | None:
    """The accuracy to expect at the site of these outputs; None for few samples or without held-out sites."""
    if model.knowledge is None or outputs.features is None or len(outputs.names) < FEWEST:
        return None
    reference = model.knowledge.reference
    signals = read_signals(reference, outputs.logits.numpy(), outputs.features.numpy(), model.temperature)
    excess = class_excess(model.info.counts, outputs.logits.argmax(1).numpy()).excess
    return estimate_site(model.knowledge, signals, excess)


def dominant_class(model: LoadedModel, outputs: Outputs) -> DominantClass | None:
    """The class that is predicted far more often than it occurs at any training site, if there is one."""
    most = class_excess(model.info.counts, outputs.logits.argmax(1).numpy())
    return DominantClass(model.classes[most.label], most.share, most.known) if most.excess > ODD else None


def vanished_classes(model: LoadedModel, outputs: Outputs) -> tuple[str, ...]:
    """Classes that are not predicted at all, though the smallest share at a training site makes `VANISHED` likely."""
    counts = np.asarray(model.info.counts, dtype=np.float64)
    least = (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).min(axis=0)
    predicted = np.bincount(outputs.logits.argmax(1).numpy(), minlength=len(least))
    return tuple(model.classes[k] for k in np.flatnonzero((predicted == 0) & (len(outputs.names) * least >= VANISHED)))


def seen_inputs(model: LoadedModel, files: Sequence[str]) -> SeenInputs | None:
    """Files that lie where the model's training data were read from, by their paths; None if none does.

    In a folder, those below a folder with the name of a training site count. Copies elsewhere are not found.
    """
    try:
        data = read_config(RunFolder(model.folder)).data
    except LongshiftError:  # the model can be used without this file
        return None
    if data == DIGITS:
        return None
    root, sources = os.path.realpath(vector_file(data)), set(model.info.sources)
    if model.info.vectors:
        found = [sources for file in files if os.path.realpath(vector_file(file)) == root]
    else:
        below: dict[str, set[str]] = {}
        places = [os.path.dirname(os.path.join(sample_file(file), split_sample(file)[1])) for file in files]
        for place in set(places):
            real = Path(os.path.realpath(place))
            inside = real.relative_to(root).parts if real.is_relative_to(root) else ()
            # The rows of a table do not tell their site.
            table = root.endswith(".parquet") and str(real) == root
            below[place] = sources if table else sources.intersection(inside)
        found = [own for place in places if (own := below[place])]
    if not found:
        return None
    sites = set().union(*found)
    return SeenInputs(tuple(name for name in model.info.sources if name in sites), len(found), len(files))
