"""A finished run as a model: no data, no pickle, no code from the run's folder."""

from __future__ import annotations

import os
import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from longshift.errors import LongshiftError
from longshift.inference.expected_accuracy import SiteKnowledge, read_knowledge
from longshift.io import read_json, write_json
from longshift.methods import Problem, get_method
from longshift.nn import Backbone, Network, make_backbone, make_network
from longshift.templates import render
from longshift.text import some
from longshift.training import (
    FrozenNetwork,
    Inputs,
    ModelFile,
    RunFolder,
    channel_tensor,
    checkpoint,
    read_model_file,
    resolve_device,
)

Weights = Literal["selected", "averaged"]
FINAL_FOLDER = "final"  # where `longshift fit` keeps its model
PLAN_FILE = "plan.json"  # what it writes before there is one
NO_USE = 1.25  # times the accuracy of guessing: below it a model has learned nothing that carries over
UNSEEN = "unseen_sites"  # in model.json


@dataclass(frozen=True)
class UnseenAccuracy:
    """How models of the same kind did at sites they had not seen; models of `longshift train` have no such record."""

    balanced: float  # accuracy averaged over classes, mean over the held-out sites
    sites: int
    classes: int
    below: str = ""  # a simple model that did better

    @property
    def useful(self) -> bool:
        """Whether it is clearly better than guessing."""
        return self.balanced >= NO_USE / self.classes

    def warning(self) -> str:
        """Why the model must not be used; "" if it may be."""
        return render("longshift.inference", "model_warning.txt.j2", record=self)


def keep_unseen(path: Path, found: UnseenAccuracy) -> None:
    """Add the record of a model to its model.json, by rename."""
    write_json(path, {**read_json(path), UNSEEN: asdict(found)})


def read_unseen(path: Path) -> UnseenAccuracy | None:
    """The record in a model.json, None where there is none."""
    try:
        return TypeAdapter(UnseenAccuracy | None).validate_python(read_json(path).get(UNSEEN))
    except ValidationError as error:
        raise LongshiftError(f"{path} is damaged: {UNSEEN}: {error}") from error


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A classifier ready for use: `model.logits(stored)` or `model.probabilities(stored)`.

    Attributes:
        folder: Where it was loaded from.
        info: What model.json holds.
        predictor: The network in evaluation mode: normalized inputs -> logits.
        inputs: What normalizes inputs.
        device: Where it computes.
        temperature: Probabilities are softmax(logits / temperature).
        unseen: How its fit did at sites it had not seen, if it comes from one.
        knowledge: What its fit kept about new sites, for estimates; only for selected weights.
        network: The frozen network below its head, if it has one.

    Example:
        >>> model = longshift.load_model("fits/hospitals")  # doctest: +SKIP
        >>> model.probabilities(torch.zeros(1, model.size, model.size, 3, dtype=torch.uint8))  # doctest: +SKIP
    """

    folder: Path
    info: ModelFile
    predictor: nn.Module
    inputs: Inputs
    device: torch.device
    temperature: float
    unseen: UnseenAccuracy | None = None
    knowledge: SiteKnowledge | None = None
    network: FrozenNetwork | None = None

    @property
    def head(self) -> LoadedModel:
        """The part above the frozen network, which takes its features."""
        assert isinstance(self.predictor, nn.Sequential)
        return replace(self, predictor=self.predictor[1], network=None)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the logits."""
        return self.info.classes

    @property
    def warning(self) -> str:
        """Why it must not be used, by its record at unseen sites; "" if it may be."""
        return self.unseen.warning() if self.unseen else ""

    @property
    def size(self) -> int:
        """Side of the images in pixels; 0 for vectors."""
        return self.info.size

    @torch.no_grad()
    def logits(self, stored: Tensor) -> Tensor:
        """(N, classes) on the CPU from pixels (N, size, size, 3) uint8 or vectors (N, length) float32."""
        out: Tensor = self.predictor(self.inputs.evaluation(stored.to(self.device)))
        return out.float().cpu()

    @torch.no_grad()
    def outputs(self, stored: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (N, classes) and the features (N, D) that they are computed from, in one pass, on the CPU."""
        network = next((part for part in self.predictor.modules() if isinstance(part, Network)), None)
        if network is None:
            raise LongshiftError(f"{self.folder}: the predictor has no network")
        caught: list[Tensor] = []
        caller = threading.get_ident()

        def catch(module: nn.Module, args: object, out: Tensor) -> None:
            if threading.get_ident() == caller:  # other threads may use the same model at the same time
                caught.append(out)

        hook = network.featurizer.register_forward_hook(catch)
        try:
            logits = self.logits(stored)
        finally:
            hook.remove()
        return logits, caught[0].float().cpu()

    def probabilities(self, stored: Tensor) -> Tensor:
        """Calibrated probabilities (N, classes) in float64."""
        return calibrated_probabilities(self.logits(stored), self.temperature)


def calibrated_probabilities(logits: Tensor, temperature: float) -> Tensor:
    """Compute softmax(logits / temperature) (N, classes) in float64."""
    return (logits.double() / temperature).softmax(1)


def model_folder(path: Path | str) -> RunFolder:
    """The run that holds a model: the folder itself, or the final model of a `longshift fit` folder."""
    path = Path(path)
    if path.is_file():
        kind = " (a pickle can run code when loaded)" if path.suffix in (".pt", ".pth", ".pkl", ".bin", ".ckpt") else ""
        raise LongshiftError(f"{path} is a file{kind}; expected the folder of a run or of a fit")
    if not path.is_dir():
        raise LongshiftError(
            f"no model at {path}: expected the folder of a run or of a fit; `longshift fit DATA --out {path}` makes one"
        )
    if not (path / "config.json").exists() and (path / FINAL_FOLDER / "config.json").exists():
        path = path / FINAL_FOLDER
    return RunFolder(path)


def load_model(path: Path | str, weights: Weights = "selected", device: str = "auto") -> LoadedModel:
    """Load the model of a run or fit folder. No code of the folder is executed.

    Args:
        path: The folder of a run or a fit.
        weights: "selected", or "averaged" for the averaged weights of a run with `average`.
        device: "auto", "cpu", "cuda" or "cuda:1".

    Returns:
        The model.

    Raises:
        LongshiftError: If the folder has no finished model, or a damaged one.

    Example:
        >>> model = longshift.load_model("fits/hospitals")  # doctest: +SKIP
        >>> model.classes  # doctest: +SKIP
    """
    folder = model_folder(path)
    if not folder.description.exists():
        if (Path(path) / PLAN_FILE).exists():
            raise LongshiftError(
                f"{path} holds no model yet: its fit is not finished. Resume it with the same `longshift fit` command."
            )
        below = sorted(str(p) for p in Path(path).glob("*") if p.is_dir() and model_folder(p).description.exists())
        if below:
            raise LongshiftError(f"{path} is not a model itself, but contains some. Name one: {some(below)}")
        raise LongshiftError(f"{folder.path} holds no model: it has no model.json; {_why_none(folder.path)}")
    info = read_model_file(folder.description)
    target = resolve_device(device)
    predictor, network = _predictor(info, folder, weights)
    inputs = Inputs(channel_tensor(info.mean, target), channel_tensor(info.std, target), None)
    temperature = info.temperature if weights == "selected" else info.averaged_temperature
    unseen = read_unseen(folder.description)
    knowledge = read_knowledge(folder.path, info.weights, len(info.classes)) if weights == "selected" else None
    predictor = predictor.to(target).eval()
    return LoadedModel(folder.path, info, predictor, inputs, target, temperature, unseen, knowledge, network)


def _predictor(info: ModelFile, folder: RunFolder, weights: Weights) -> tuple[nn.Module, FrozenNetwork | None]:
    """Normalized inputs to logits: the trained network, on top of the frozen one where only a head was trained."""
    file = weights_file(folder, weights)
    below = folder.network if info.head else file
    # A weight takes two bytes or more: a description that names a larger network than the file has weights is refused.
    most = below.stat().st_size // 2 if below.exists() else 0
    try:
        backbone = make_backbone(
            info.backbone, input_dim=info.input_dim, pad_type=info.pad_type, most=most, size=info.size
        )
    except LongshiftError as error:
        raise LongshiftError(f"{folder.description} or {below.name} is damaged: {error}") from error
    trained = make_backbone(info.head, input_dim=backbone.feature_dim) if info.head else backbone
    if file.exists() and 2 * trained.feature_dim * len(info.classes) > file.stat().st_size:
        raise LongshiftError(
            f"{folder.description} or {file.name} is damaged: too few weights for {len(info.classes)} classes"
        )
    # Dropout and precision belong to training; a model is used in float32.
    network = make_network(trained, len(info.classes), freeze_bn=info.freeze_bn)
    named = info.weights if weights == "selected" else info.averaged_weights
    predictor: nn.Module = network
    if info.predictor == "network":
        checkpoint.load_weights(file, network, prefix="network.", expected=named)
    else:
        cls = get_method(info.method)
        problem = Problem(len(info.classes), len(info.counts), info.counts, info.steps)
        method = cls(network, problem, cls.Config.make(info.hparams))
        checkpoint.load_weights(file, method, expected=named)
        predictor = method.predictor()
    if not info.head:
        return predictor, None
    frozen = _frozen(info, folder, backbone)
    return nn.Sequential(frozen.backbone.module, predictor), frozen


def frozen_network(info: ModelFile, folder: RunFolder) -> FrozenNetwork | None:
    """The network below the head of a saved model; None where no part is frozen."""
    if not info.head:
        return None
    return _frozen(info, folder, make_backbone(info.backbone, pad_type=info.pad_type, size=info.size))


def _frozen(info: ModelFile, folder: RunFolder, backbone: Backbone) -> FrozenNetwork:
    checkpoint.load_weights(folder.network, backbone.module, expected=info.network_weights)
    red, green, blue = info.mean
    first, second, third = info.std
    mean, std = (red, green, blue), (first, second, third)
    return FrozenNetwork(info.backbone, replace(backbone, mean=mean, std=std, preprocessing=info.preprocessing))


def _why_none(path: Path) -> str:
    """The likely reason why a folder has no model."""
    whole = path.resolve().parent.parent
    if (whole / PLAN_FILE).exists():
        above = Path(os.path.normpath(path / os.pardir / os.pardir))
        return f"it is a run of a fit with a site held out, which keeps no weights; use the model of the fit, {above}"
    if not (path / "config.json").exists():
        return "expected the folder of a run or of a fit, as `longshift fit DATA` makes it, followed by the images"
    return "the run was made with --no-keep-model, or is not finished"


def weights_file(folder: RunFolder, weights: Weights) -> Path:
    """The file of the selected or of the averaged weights."""
    if weights == "selected":
        return folder.model
    if not folder.averaged.exists():
        raise LongshiftError(f"{folder.path} has no averaged weights; train with --average ema or swa to have them")
    return folder.averaged
