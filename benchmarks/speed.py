"""Seconds a training step takes, end to end (batch, augmentation, step, logging), beside the hardware's floor.

    python -m benchmarks.speed --size 224 --backbone resnet50 --methods erm,ndcl --classes 7,65 --out speed.csv

`floor` is forward, backward and Adam on one fixed batch and nothing else, as a CUDA graph where there is a GPU.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from benchmarks.common import machine, made_up_task, seconds_per_step, write_rows
from longshift.nn import optim
from longshift.nn.backbones import make_backbone, make_network
from longshift.nn.batch_norm_folding import fold_frozen_norms
from longshift.training.device import resolve_device, synchronize
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.trainer import Trainer


def floor(backbone: str, size: int, batch: int, classes: int, device: torch.device, steps: int) -> float:
    """Forward, backward, Adam on a fixed batch, batch-norm statistics frozen."""
    cuda = device.type == "cuda"
    network = make_network(make_backbone(backbone), classes, precision="bf16" if cuda else "fp32")
    network.to(device).to(memory_format=torch.channels_last).train()
    fold_frozen_norms(network.featurizer, torch.rand(2, 3, size, size, device=device))
    if cuda:
        network.compile_featurizer()
    optimizer = optim.adam(network.parameters(), 5e-5)
    x = torch.randn(batch, 3, size, size, device=device).contiguous(memory_format=torch.channels_last)
    y = torch.randint(classes, (batch,), device=device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        cross_entropy(network(x), y).backward()
        optimizer.step()

    run = step
    if cuda:
        torch.backends.cudnn.benchmark = True
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.synchronize()
        optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        run = graph.replay
    for _ in range(3):
        run()
    synchronize(device)
    start = time.perf_counter()
    for _ in range(steps):
        run()
    synchronize(device)
    return (time.perf_counter() - start) / steps


def measure(args: argparse.Namespace, method: str, classes: int, backbone: str, runtime: Runtime) -> dict[str, Any]:
    """One row."""
    task = made_up_task(classes, args.size)
    config = RunConfig(
        data="made-up", target=task.split.target, method=method, backbone=backbone, image_size=args.size,
        steps=args.warm + args.steps, augment="on", hparams={"batch_size": args.batch},
    )  # fmt: skip
    device = resolve_device(runtime.device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as out:
        trainer = Trainer(config, task, Path(out), runtime)
        step, warm = seconds_per_step(trainer, args.warm, args.steps)
    memory = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
    return {"seconds_per_step": round(step, 5), "warm_up_seconds": round(warm, 2), "gpu_memory_gib": round(memory, 2)}


def main() -> None:
    """Measure, print a line each, write a CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--backbone", default="resnet50", help="comma-separated")
    parser.add_argument("--methods", default="floor,erm,ndcl")
    parser.add_argument("--classes", default="7")
    parser.add_argument("--batch", type=int, default=32, help="images per domain; three source domains")
    parser.add_argument("--warm", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--paths", default="graphs", help="plain, graphs, compile, stream; comma-separated")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    device = resolve_device(args.device)
    rows = []
    cases = itertools.product(args.backbone.split(","), args.classes.split(","), args.methods.split(","))
    for backbone, classes, method in cases:
        for path in args.paths.split(",") if method != "floor" else ["graphs"]:
            row: dict[str, Any] = {"backbone": backbone, "size": args.size, "batch": 3 * args.batch}
            row |= {"classes": int(classes), "method": method, "path": path}
            if method == "floor":
                value = floor(backbone, args.size, 3 * args.batch, int(classes), device, args.steps)
                row |= {"seconds_per_step": round(value, 5), "warm_up_seconds": 0.0, "gpu_memory_gib": 0.0}
            else:
                runtime = Runtime(
                    device=args.device,
                    graphs="off" if path == "plain" or device.type != "cuda" else "on",
                    compile="on" if path in ("compile", "stream") else "off",
                    stream=path == "stream",
                )
                row |= measure(args, method, int(classes), backbone, runtime)
            row |= machine(device)
            rows.append(row)
            print(json.dumps(row), flush=True)
            gc.collect()
            if device.type == "cuda":
                torch.cuda.empty_cache()
    write_rows(args.out, rows)


if __name__ == "__main__":
    main()
