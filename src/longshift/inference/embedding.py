"""Images as vectors: the features of a frozen network for each image of a dataset, as a table to train on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from longshift.data import Manifest, Store
from longshift.errors import UsageError
from longshift.files import replacing
from longshift.nn import Backbone, without_kernel_tuning
from longshift.progress import Tick, silent
from longshift.training import channel_tensor, normalize_pixels, resolve_device

Vectors = npt.NDArray[np.float32]
CHUNK = 64


def embed(store: Store, backbone: Backbone, device: str = "auto", tick: Tick = silent) -> Vectors:
    """Feature vectors (N, feature_dim) of all images of a store, in its order, in float32 and without augmentation."""
    if store.inputs.ndim == 2:
        raise UsageError("Expected images, got vectors: `longshift embed` turns images into vectors")
    where = resolve_device(device)
    module = backbone.module.eval().to(where)
    module.to(memory_format=torch.channels_last)
    mean, std = channel_tensor(backbone.mean, where), channel_tensor(backbone.std, where)
    result = np.empty((len(store.inputs), backbone.feature_dim), dtype=np.float32)
    with torch.inference_mode(), without_kernel_tuning(exact=True):  # cuDNN would round to TF32 by itself
        for start in range(0, len(result), CHUNK):
            pixels = torch.from_numpy(np.array(store.inputs[start : start + CHUNK])).to(where)
            features = module(normalize_pixels(pixels, mean, std)).float().cpu().numpy()
            result[start : start + len(features)] = features
            tick(len(features))
    return result


def write_table(path: Path, vectors: Vectors, manifest: Manifest) -> None:
    """Write vectors with the classes, domains and paths of their images as .npz, which `load_dataset` reads."""
    if path.suffix.lower() != ".npz":
        raise UsageError(f"expected a file that ends in .npz, got {path}")
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(
            file,
            x=vectors,
            label=np.array(manifest.classes)[manifest.labels],
            domain=np.array(manifest.domain_names)[manifest.domains],
            id=np.array(manifest.paths),
        )
