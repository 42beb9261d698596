"""From a run's configuration to its network, method and input pipeline."""

from __future__ import annotations

from pathlib import Path

import torch

from longshift.data.augment import Augmentation, augment_with, compiled_augment
from longshift.data.batches import Inputs
from longshift.engine.ahead import keep_compiled
from longshift.engine.config import RunConfig, Runtime
from longshift.engine.device import compiles, resolve_precision, tune
from longshift.engine.model_file import ModelFile
from longshift.engine.task import Task
from longshift.methods.base import Method
from longshift.nn.backbones import make_backbone, make_network
from longshift.nn.fold import fold_frozen_norms
from longshift.nn.vector_mlp import VectorMLP


def build_method(
    config: RunConfig, task: Task, runtime: Runtime, device: torch.device, saved: ModelFile | None = None
) -> tuple[Method, Inputs]:
    """Network, method and input pipeline, from the train seed alone, on the device.

    With `saved`, a finished run's description, only the structure is built: all weights are about to be loaded.
    """
    fresh = saved is None
    hparams = config.method_config()
    precision = resolve_precision(runtime, device)
    tune(device, precision)
    vectors = task.store.inputs.ndim == 2
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.train_seed)
        backbone = make_backbone(
            config.backbone_name,
            pretrained=config.pretrained and fresh,
            weights=Path(config.weights) if config.weights and fresh else None,
            input_dim=task.store.inputs.shape[1] if vectors else 0,
            pad_type=saved.pad_type if saved else "",
        )
        if isinstance(backbone.module, VectorMLP) and fresh:
            backbone.module.fit_inputs(torch.from_numpy(task.store.inputs[task.split.train]))
        network = make_network(
            backbone,
            len(task.split.classes),
            dropout=hparams.dropout,
            freeze_bn=config.freeze_bn,
            precision=precision,
        )
        method = config.method_class(network, task.problem(config.steps, config.pooled), hparams)
    method.to(device=device)
    method.to(memory_format=torch.channels_last)
    if config.freeze_bn and not vectors:
        fold_frozen_norms(network.featurizer, torch.rand(2, 3, config.size, config.size, device=device))
    if compiles(runtime, device, config.steps):
        keep_compiled(runtime.cache)
        network.compile_featurizer()
    shape = (1, 3, 1, 1)
    inputs = Inputs(
        torch.tensor(saved.mean if saved else backbone.mean, device=device).reshape(shape),
        torch.tensor(saved.std if saved else backbone.std, device=device).reshape(shape),
        Augmentation() if config.augmented else None,
        compiled_augment() if compiles(runtime, device, config.steps) else augment_with,
    )
    return method, inputs
