"""From a run's configuration to its parts: network, method, input pipeline, where samples come from, how steps run."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from longshift.methods import Method
from longshift.nn import Backbone, VectorHead, make_backbone, make_network
from longshift.rng import HostDraws
from longshift.training.augment import find_augmentation
from longshift.training.batch_source import ResidentSource, Source, StreamedSource, fits, host_tensor, resident_pool
from longshift.training.checkpoint import ModelFile
from longshift.training.device import compiles, keep_compiled, resolve_precision, tune, use_graphs
from longshift.training.graph_rng import TapedDraws
from longshift.training.inputs import Inputs, channel_tensor, training_set
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.steppers import GraphStepper, LossLog, PlainStepper, Stepper
from longshift.training.task import Task


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
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.train_seed)
        backbone = _trained_part(config, task, saved)
        if isinstance(backbone.module, VectorHead) and fresh:
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
    if config.freeze_bn and any(isinstance(part, nn.BatchNorm2d) for part in network.featurizer.modules()):
        from longshift.nn import fold_frozen_norms  # imports timm: seconds that a network without batch norm saves

        fold_frozen_norms(network.featurizer, torch.rand(2, 3, config.size, config.size, device=device))
    compiled = compiles(runtime, device, config.steps)
    if compiled:
        keep_compiled(runtime.cache)
        network.compile_featurizer()
    pixels = saved or (task.network.backbone if task.network else backbone)
    inputs = Inputs(
        channel_tensor(pixels.mean, device),
        channel_tensor(pixels.std, device),
        find_augmentation(config.augmentation, compiled) if config.augmentation else None,
        config.style_config(),
        compiled,
    )
    return method, inputs


def _trained_part(config: RunConfig, task: Task, saved: ModelFile | None) -> Backbone:
    """The featurizer that a run trains: the network, or the head on vectors or features."""
    if config.frozen:
        return make_backbone(config.head, input_dim=task.store.inputs.shape[1])
    return make_backbone(
        config.backbone_name,
        pretrained=config.pretrained and not saved,
        weights=Path(config.weights) if config.weights and not saved else None,
        input_dim=task.store.inputs.shape[1] if config.vectors else 0,
        pad_type=saved.pad_type if saved else "",
        size=config.size,
    )


def build_source(
    config: RunConfig, task: Task, runtime: Runtime, device: torch.device, inputs: Inputs, batch_size: int
) -> Source:
    """Training samples on the device where they fit, streamed from the host where not; `batch_size` is per domain."""
    (rows, samples), sources = task.training_rows(), len(task.split.sources)
    domains = task.training_domains(samples, config.pooled)
    train = training_set(rows, task.labels(samples), domains, 1 if config.pooled else sources)
    pool = host_tensor(task.store.inputs)
    # A batch is as large either way: only where its samples come from differs.
    per_domain = batch_size * (sources if config.pooled else 1)
    if not runtime.stream and fits(pool, device):
        return ResidentSource(resident_pool(pool, task.store.fingerprint, device), train, per_domain, inputs, device)
    return StreamedSource(pool, train, per_domain, inputs, device, config.train_seed)


def build_stepper(
    config: RunConfig, runtime: Runtime, device: torch.device, method: Method, source: Source, log: LossLog
) -> Stepper:
    """Steps of the method, which is started here: captured where it and the device allow it."""
    if use_graphs(runtime, device) and method.capturable:
        taped = TapedDraws(config.train_seed, 0, device)
        method.start(taped)
        return GraphStepper(method, source, taped, log, config.steps)
    draws = HostDraws(config.train_seed, 0, device)
    method.start(draws)
    return PlainStepper(method, source, draws, log)
