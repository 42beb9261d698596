"""Forward passes over many batches: on the CPU, each processor works on its own batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import torch
from torch import Tensor

from longshift.data import cores, ordered_map
from longshift.inference.loading import LoadedModel
from longshift.training import use_threads

In = TypeVar("In")
Note = TypeVar("Note")
Read = Callable[[In], tuple[Note, "Tensor | None"]]
Logits = tuple[Tensor, "Tensor | None"]  # with features, if they are wanted

CPU_IMAGES, GPU_IMAGES, VECTORS = 16, 64, 4096  # samples per batch
AHEAD = 2  # batches per processor that wait in memory


def batch_size(model: LoadedModel) -> int:
    """Samples per batch."""
    if model.info.vectors:
        return VECTORS
    return CPU_IMAGES if model.device.type == "cpu" else GPU_IMAGES


def map_batches(
    model: LoadedModel, read: Read[In, Note], items: Iterable[In], features: bool, threads: int = 0
) -> Iterator[tuple[Note, Logits | None]]:
    """Read each item, which gives a note and a batch (None: nothing to compute), and compute; results are in order.

    Each batch is computed by one thread. So the numbers do not depend on the number of threads, and no thread waits
    for another, as threads that share one product do: on a busy machine, two of those took twice as long as one.
    """
    on_cpu = model.device.type == "cpu"

    def compute(batch: Tensor | None) -> Logits | None:
        if batch is None:
            return None
        return model.outputs(batch) if features else (model.logits(batch), None)

    def work(item: In) -> tuple[Note, Tensor | None, Logits | None]:
        note, batch = read(item)
        return (note, None, compute(batch)) if on_cpu else (note, batch, None)

    # Products of vectors are too small to share: two threads that switch between them are slower than one.
    threads = threads or (1 if model.info.vectors else cores())
    with use_threads(1 if on_cpu else 0):
        for note, batch, found in ordered_map(work, items, threads, AHEAD * threads):
            yield note, found if on_cpu else compute(batch)


def rows_in_batches(model: LoadedModel, stored: Tensor, features: bool, threads: int = 0) -> Logits:
    """Outputs of the rows of pixels or vectors."""
    parts = [
        found
        for _, found in map_batches(
            model, lambda part: (None, part), stored.split(batch_size(model)), features, threads
        )
        if found is not None
    ]
    logits = torch.cat([part[0] for part in parts])
    kept = [part[1] for part in parts if part[1] is not None]
    return logits, torch.cat(kept) if kept else None
