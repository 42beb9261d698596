"""How long a fit takes if it trains the whole network or only a head: measured on a few images, said in a sentence."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import torch

from longshift.data import Manifest, cores
from longshift.errors import LongshiftError
from longshift.fitting.plan import usual_steps
from longshift.text import about, counted, duration
from longshift.training import (
    FeatureRequest,
    FrozenNetwork,
    RunConfig,
    Runtime,
    features_missing,
    frozen_module,
    resolve_device,
    use_threads,
)

HEAD_STEP = 0.02  # seconds of a step on features; 14 ms were measured with 256 samples of length 1,280
BACKWARD = 3  # times a forward pass: that and the backward pass
MEASURED = 2  # forward passes over all held-out images of a run, for the last and the selected weights
BATCH = 8
TIMED = 4  # passes; the median of all but the first counts


@dataclass(frozen=True)
class Pass:
    """A forward pass of a network on this machine."""

    network: FrozenNetwork
    seconds_per_image: float


def time_pass(config: RunConfig, runtime: Runtime) -> Pass:
    """Measure a forward pass, as features are computed: every processor works on its own batches."""
    device, network = resolve_device(runtime.device), FrozenNetwork.of(config)
    at_once = 1 if device.type == "cuda" else runtime.threads or cores()
    images = torch.rand(BATCH, 3, config.size, config.size, device=device)
    with torch.inference_mode(), use_threads(0 if device.type == "cuda" else 1):
        module = frozen_module(network.backbone.module, config.size, device)
        times = []
        for _ in range(TIMED):
            started = time.perf_counter()
            module(images).sum().item()
            times.append(time.perf_counter() - started)
        return Pass(network, statistics.median(times[1:]) / BATCH / at_once)  # the first pass allocates memory


def require_time_for_features(config: RunConfig, manifest: Manifest, seconds: float, runtime: Runtime) -> None:
    """Raise before the features of the images are computed if that alone takes longer than the time that is left."""
    found = time_pass(config, runtime)
    needed = found.seconds_per_image * features_missing(manifest, found.network, FeatureRequest.of(config), runtime)
    if needed > seconds:
        raise LongshiftError(
            f"Expected time for the features of the images, {about(needed)} on this machine, got "
            f"{duration(max(seconds, 0))}. Allow more (--minutes) or use smaller images (--image-size). Features are "
            "kept: later fits on these images do not need this time"
        )


def head_seconds(config: RunConfig, manifest: Manifest, runs: int, steps: int, runtime: Runtime) -> tuple[float, int]:
    """Seconds of a fit that trains only a head, and how many features are missing in the cache."""
    found = time_pass(config, runtime)
    missing = features_missing(manifest, found.network, FeatureRequest.of(config), runtime)
    return missing * found.seconds_per_image + runs * steps * HEAD_STEP, missing


def whole_seconds(config: RunConfig, manifest: Manifest, runs: int, steps: int, runtime: Runtime) -> float:
    """Seconds of a fit that trains the whole network."""
    per_image = time_pass(config, runtime).seconds_per_image
    batch = config.method_config().batch_size * len(manifest.domain_names)
    return runs * per_image * (BACKWARD * steps * batch + MEASURED * len(manifest))


def time_all_runs(config: RunConfig, manifest: Manifest, runs: int, steps: int | None, runtime: Runtime) -> str:
    """How long a fit takes, such as "about 20 seconds in all, with 200 steps per run"; `steps`: None for the usual."""
    steps = steps or usual_steps(len(manifest), len(manifest.domain_names), config)
    length, cached = f"in all, with {counted(steps, 'step')} per run", ""
    if config.frozen:
        seconds, missing = head_seconds(config, manifest, runs, steps, runtime)
        cached = "" if missing else ", because the features of the images are in the cache"
    else:
        seconds = whole_seconds(config, manifest, runs, steps, runtime)
    return f"{about(seconds)} {length}{cached}"
