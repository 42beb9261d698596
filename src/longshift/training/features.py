"""Features of all images of a dataset from a frozen network, computed once and kept, memory-mapped.

    $LONGSHIFT_CACHE/features/KEY/rows.bin     float32 features: all images, then all first copies, ...
    $LONGSHIFT_CACHE/features/KEY/index.json   what they are made from

KEY names the content of the images, the network with its weights, the image size and the recipe of the copies; for
networks and augmentations of a plugin, also its code. An interrupted computation resumes after its last row; more
views are added to those that are there. Features of an earlier state of the same images are removed.

Copies of images are augmented, and styled after an image of another domain. Copy v of image i depends on v, i and the
recipe alone, so that it can be computed at any time and in any batch, and runs with other targets, settings and seeds
share it. The partner of a styled copy may therefore be any image of another domain; a run leaves out the copies whose
partner is not one of its training images.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from longshift.array_types import FloatArray, IntArray
from longshift.data import (
    BadImage,
    Manifest,
    Store,
    cache_folder,
    cores,
    data_version,
    open_pixels,
    ordered_map,
)
from longshift.errors import LongshiftError, UsageError
from longshift.io import cannot_write, content_hash, is_locked, locked, read_json, write_json
from longshift.losses import KERNELS_SHAPE, random_kernels
from longshift.methods import StyleConfig
from longshift.nn import Backbone, backbone_version, make_backbone, without_kernel_tuning
from longshift.progress import Tick, silent
from longshift.rng import generator
from longshift.text import counted, some
from longshift.training.augment import find_augmentation
from longshift.training.checkpoint import digest
from longshift.training.device import resolve_device, use_threads
from longshift.training.inputs import channel_tensor, scale_pixels
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.style import UNIFORMS, Drawn, mix_styles

SEED = 20190  # of all copies: a cache of features serves every train seed
# Version of how partners are chosen. A cache keeps the features of copies, but their partners are chosen anew by each
# run, which leaves out the copies with the style of other images than its own: both must be by one rule.
PARTNER_RULE = 2


@dataclass(frozen=True)
class CopyRecipe:
    """How copies differ from their image."""

    augmentation: str = ""  # "" for none
    style: StyleConfig | None = None

    @classmethod
    def of(cls, config: RunConfig) -> CopyRecipe:
        """The recipe of a run."""
        return cls(config.augmentation, config.style_config())

    def key(self) -> dict[str, Any]:
        """Everything that tells recipes apart, as plain values."""
        style = self.style
        mixed = [style.mix, style.amount, style.share, style.partner == "class"] if style else None
        version = find_augmentation(self.augmentation).version if self.augmentation else ""
        code = {"code": version} if version else {}  # of a plugin: its name does not tell what it does
        rule = {"partners": PARTNER_RULE} if style and style.has_partners else {}
        return {"augmentation": self.augmentation, "style": mixed, **code, **rule}


class ViewPlan:
    """The random choices of one view of all images of a dataset."""

    def __init__(self, manifest: Manifest, recipe: CopyRecipe, view: int) -> None:
        self.recipe, self.view = recipe, view
        self._augment = find_augmentation(recipe.augmentation) if recipe.augmentation else None
        rng, n = generator(SEED, view, 0), len(manifest)
        self._augment_u = torch.from_numpy(rng.random((n, self._augment.uniforms if self._augment else 0)))
        self._style_u = torch.from_numpy(rng.random((n, UNIFORMS)))
        self.partners: IntArray | None = None
        self.style_samples = np.arange(n)
        style = recipe.style
        if style is not None and style.has_partners:
            self.partners = choose_partners_in_dataset(manifest, rng.random((n, 2)), style.partner == "class")
            drawn = Drawn.of(self._style_u, style)
            self.style_samples = np.where((drawn.styled & drawn.mixed).numpy(), self.partners, self.style_samples)

    def apply(self, images: Tensor, styles: Tensor, indices: IntArray, center: Tensor) -> Tensor:
        """Copies of images (B, 3, H, W) in [0, 1].

        `styles` (B, 3, H, W) are the partners of the images, `indices` their places in the dataset, and `center`
        (1, 3, 1, 1) is the mean color.
        """
        places, style = torch.from_numpy(indices), self.recipe.style
        if self._augment is not None:
            images = self._augment.apply(images, self._augment_u[places].to(images))
        if style is None:
            return images
        # Compared in double precision, as for `style_samples`; the amounts have the precision of the images.
        drawn, kernels = Drawn.of(self._style_u[places], style, images.dtype), None
        every = torch.arange(len(images))
        if style.has_kernels:
            kernels = self._kernels(indices, drawn.kernel).to(images)
            drawn = drawn._replace(kernel=every)
        drawn = Drawn(*(values.to(images.device) for values in drawn))
        return mix_styles(images, center, drawn, every.to(images.device), kernels, style.mix, styles)

    def _kernels(self, indices: IntArray, chosen: Tensor) -> Tensor:
        """A random kernel for each image: that of the chosen size from the image's own set."""
        kernels = [
            random_kernels(torch.from_numpy(generator(SEED, self.view, 1 + int(i)).standard_normal(KERNELS_SHAPE)))[k]
            for i, k in zip(indices, chosen.tolist(), strict=True)
        ]
        return torch.stack(kernels)


def choose_partners_in_dataset(manifest: Manifest, u: FloatArray, same_class: bool = False) -> IntArray:
    """For each image the index of another, by two uniform numbers: any other domain, then any of its images.

    An image has the same possible partners as by `longshift.losses.choose_partners`, which training uses on a batch:
    images of other domains, or with a single domain any other image; with `same_class` those of the same class where
    there are any. Training draws uniformly over these images. Here each of their domains is equally likely, and each
    image within it: large domains do not give most styles. An image that is alone in the dataset is its own partner.

    Whoever changes the choice raises `PARTNER_RULE`.
    """
    domains = len(manifest.domain_names)
    members = [np.flatnonzero(manifest.domains == d) for d in range(domains)]
    alike = {
        (d, k): rows[manifest.labels[rows] == k] for d, rows in enumerate(members) for k in range(len(manifest.classes))
    }

    @functools.cache
    def pools(d: int, k: int) -> list[IntArray]:
        """Images that may be the partner of one of domain d and class k, by domain."""
        others = [other for step in range(1, domains) if len(members[other := (d + step) % domains])] or [d]
        of_class = [alike[other, k] for other in others if len(alike[other, k]) > (other == d)]
        return of_class if same_class and of_class else [members[other] for other in others]

    partners = np.arange(len(manifest))
    for i, (d, k) in enumerate(zip(manifest.domains.tolist(), manifest.labels.tolist(), strict=True)):
        found = pools(d, k)
        partners[i] = _other_than(i, found[int(u[i, 0] * len(found))], u[i, 1])
    return partners


def _other_than(index: int, rows: IntArray, u: float) -> int:
    """One of the sorted rows by a uniform number, but not `index` unless it is the only one."""
    place = int(np.searchsorted(rows, index))
    inside = place < len(rows) and rows[place] == index and len(rows) > 1
    chosen = int(u * (len(rows) - inside))
    return int(rows[chosen + (inside and chosen >= place)])


FORMAT = 1
# On a CPU each thread takes small batches by itself: they stay in its cache, and no thread waits for another, which
# on a busy machine costs more than the work. On a GPU one thread computes and the others decode.
CPU_BATCH, GPU_BATCH = 8, 32
PIECE = 64  # images between two pieces of the file
AHEAD = 2  # batches per thread that wait in memory: decoded images are large
log = logging.getLogger("longshift")
Rows = npt.NDArray[np.float32]


class RowFile:
    """Rows of `columns` numbers, one after the other: a row counts when all of it is in the file."""

    def __init__(self, folder: Path, columns: int) -> None:
        self.data, self.columns = folder / "rows.bin", columns

    def count(self) -> int:
        """The number of whole rows."""
        return self.data.stat().st_size // (4 * self.columns) if self.data.exists() else 0

    def read(self, count: int) -> Rows:
        """The first rows, memory-mapped."""
        return np.memmap(self.data, dtype=np.float32, mode="r", shape=(count, self.columns))

    @contextmanager
    def appending(self) -> Iterator[Callable[[Rows], None]]:
        """A function that writes rows after the last whole one; one process at a time."""
        with self.data.open("ab") as file:
            file.truncate(self.count() * 4 * self.columns)

            def write(rows: Rows) -> None:
                file.write(np.ascontiguousarray(rows, dtype=np.float32).tobytes())
                file.flush()

            yield write


@dataclass(frozen=True, eq=False)
class FrozenNetwork:
    """A network whose weights stay as they are."""

    name: str
    backbone: Backbone

    @property
    def feature_dim(self) -> int:
        """Length of a feature vector."""
        return self.backbone.feature_dim

    @functools.cached_property
    def weights_hash(self) -> str:
        """SHA-256 over the weights, wherever they come from."""
        return digest({name: tensor.cpu() for name, tensor in self.backbone.module.state_dict().items()})

    @classmethod
    def of(cls, config: RunConfig) -> FrozenNetwork:
        """The network of a run, with its starting weights."""
        weights = Path(config.weights) if config.weights else None
        return cls(
            config.backbone_name, make_backbone(config.backbone_name, pretrained=config.pretrained, weights=weights)
        )


@dataclass(frozen=True)
class FeatureRequest:
    """Which features: image size, number of views, and how copies are made (which counts from two views on)."""

    size: int
    views: int = 1
    recipe: CopyRecipe = field(default_factory=CopyRecipe)

    @classmethod
    def of(cls, config: RunConfig) -> FeatureRequest:
        """The features of a run."""
        return cls(config.size, config.views, CopyRecipe.of(config))

    @property
    def plain(self) -> FeatureRequest:
        """The images alone."""
        return FeatureRequest(self.size)


def open_features(
    manifest: Manifest,
    network: FrozenNetwork,
    request: FeatureRequest,
    *,
    runtime: Runtime | None = None,
    tick: Tick = silent,
) -> Store:
    """Features (views * N, length) of all images; those that are not in the cache are computed first.

    Args:
        manifest: The images.
        network: What computes the features.
        request: Image size and views.
        runtime: Cache, device and threads.
        tick: Called with the number of finished views of images.

    Returns:
        The store. An image that cannot be read has NaN in its rows; `require_readable` makes that an error.
    """
    if manifest.vectors:
        raise UsageError("Expected images, got vectors: only images are passed through a network")
    runtime = runtime or Runtime()
    return _open(manifest, data_version(manifest, runtime.cache), network, request, runtime, tick)


def _open(
    manifest: Manifest, version: str, network: FrozenNetwork, request: FeatureRequest, runtime: Runtime, tick: Tick
) -> Store:
    """As `open_features`, for images of this version."""
    plans = [ViewPlan(manifest, request.recipe, view) for view in range(1, request.views)]
    folder = feature_folder(manifest, network, request, runtime.cache, version)
    rows, needed = RowFile(folder, network.feature_dim), request.views * len(manifest)
    if rows.count() < needed:
        _complete(rows, folder, manifest, version, network, request, plans, runtime, tick)
    else:
        tick(needed)
    shown = np.concatenate([np.arange(len(manifest)), *(plan.style_samples for plan in plans)]) if plans else None
    name = f"{folder.name}-{needed}"
    return Store(manifest, rows.read(needed), request.size, name, request.views, shown, version)


def feature_folder(
    manifest: Manifest, network: FrozenNetwork, request: FeatureRequest, cache: Path | None = None, version: str = ""
) -> Path:
    """Where the features are kept; `version` is that of the images, where it is known."""
    version = version or data_version(manifest, cache)
    backbone, code = network.backbone, backbone_version(network.name)
    key = {
        "format": FORMAT, "images": [manifest.fingerprint(), version], "size": request.size,
        "network": network.name, "weights": network.weights_hash,
        "inputs": [backbone.mean, backbone.std, backbone.pad_type],
        "copies": request.recipe.key() if request.views > 1 else None,
        **({"code": code} if code else {}),
    }  # fmt: skip
    return cache_folder(cache) / "features" / content_hash(key)[:32]


def require_readable(store: Store) -> None:
    """Raise with a list of the images that cannot be read."""
    bad = unreadable(store)
    if bad:
        listed = some([f"{path} ({reason})" for path, reason in bad.items()])
        raise LongshiftError(
            f"{len(bad)} of the {counted(len(store), 'image')} of {store.manifest.name} cannot be read: {listed}. "
            f"`longshift data verify {store.manifest.argument}` lists all problems."
        )


def unreadable(store: Store) -> dict[str, str]:
    """The images without usable features, and why."""
    found = {}
    with open_pixels(store.manifest, store.size) as read:
        for index in np.flatnonzero(~usable_rows(store)):
            path = store.manifest.paths[index]
            try:
                read(int(index))
                # An image that could not be read when its features were computed has none at all.
                found[path] = "unreadable" if np.isnan(store.inputs[index]).all() else "the network gives NaN for it"
            except BadImage as bad:
                found[path] = f"{bad.kind}: {bad.detail}"
    return found


def usable_rows(store: Store) -> npt.NDArray[np.bool_]:
    """Which images have features without NaN; in pieces, as the features may not fit into memory."""
    parts = [
        ~np.isnan(store.inputs[start : min(start + 4096, len(store))]).any(axis=1)
        for start in range(0, len(store), 4096)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def _complete(
    rows: RowFile, folder: Path, manifest: Manifest, version: str, network: FrozenNetwork, request: FeatureRequest,
    plans: list[ViewPlan], runtime: Runtime, tick: Tick,
) -> None:  # fmt: skip
    """Compute the rows that are missing; another process that needs them waits."""
    n, needed = len(manifest), request.views * len(manifest)
    if request.views > 1:  # the images themselves are shared by all recipes
        store = _open(manifest, version, network, request.plain, runtime, tick)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / ".lock", lambda: tick(0, "waiting for the process that computes these features")):
            _require_same(manifest, version, runtime)  # the folder is that of the images before the wait
            present = rows.count()
            _need_room(folder, (needed - present) * rows.columns * 4)
            index = _index(manifest, version, network, request)
            stale = _stale(folder, index)
            if stale:
                log.warning(
                    "%s (or a plugin) changed since its features were computed; computing them again", manifest.name
                )
            write_json(folder / "index.json", index)
            with rows.appending() as write:
                if request.views > 1 and present < n:
                    write(np.asarray(store.inputs[present:n], dtype=np.float32))
                    present = n
                elif request.views == 1 or present > n:
                    tick(present - (n if request.views > 1 else 0))
                with _computing(manifest, network, request.size, runtime) as compute:
                    for view in range(present // n, request.views):
                        start = max(present - view * n, 0)
                        for piece in compute(np.arange(start, n), plans[view - 1] if view else None):
                            write(piece)
                            tick(len(piece))
            try:
                _require_same(manifest, version, runtime)
            except LongshiftError:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            for old in stale:
                shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


def _require_same(manifest: Manifest, version: str, runtime: Runtime) -> None:
    if data_version(manifest, runtime.cache) != version:
        raise LongshiftError(f"images of {manifest.name} changed while they were read. Run again.")


def _stale(folder: Path, index: dict[str, Any]) -> list[Path]:
    """Features of an earlier state of the same images, made in the same way; not those that are being computed."""
    same, found = {**index, "version": ""}, []
    for other in filter(Path.is_dir, folder.parent.iterdir()):
        with contextlib.suppress(LongshiftError, TypeError):  # damaged, or not ours
            alike = other != folder and {**read_json(other / "index.json"), "version": ""} == same
            if alike and not is_locked(other / ".lock"):
                found.append(other)
    return found


Compute = Callable[[IntArray, "ViewPlan | None"], Iterator[Rows]]


@contextmanager
def _computing(manifest: Manifest, network: FrozenNetwork, size: int, runtime: Runtime) -> Iterator[Compute]:
    """A function that gives the features of images in pieces."""
    where = resolve_device(runtime.device)
    on_cpu = where.type == "cpu"
    backbone, batch = network.backbone, CPU_BATCH if on_cpu else GPU_BATCH
    module = frozen_module(backbone.module, size, where)
    mean, std = channel_tensor(backbone.mean, where), channel_tensor(backbone.std, where)

    def forward(pixels: list[npt.NDArray[np.uint8]], others: list[npt.NDArray[np.uint8]], part: IntArray,
                plan: ViewPlan | None) -> Rows:  # fmt: skip
        with torch.inference_mode():
            images = _scaled(pixels, where)
            if plan is not None:
                images = plan.apply(images, _scaled(others, where) if others else images, part, mean)
            inputs = ((images - mean) / std).contiguous(memory_format=torch.channels_last)
            features: Rows = module(inputs).float().cpu().numpy()
            return features

    with open_pixels(manifest, size) as read, use_threads(1 if on_cpu else 0):
        blank = np.zeros((size, size, 3), dtype=np.uint8)

        def decoded(index: int) -> npt.NDArray[np.uint8] | None:
            try:
                return read(index)
            except BadImage:
                return None

        def work(part: IntArray, plan: ViewPlan | None) -> tuple[Rows | Callable[[], Rows], list[bool]]:
            images = [decoded(int(index)) for index in part]
            partners = plan.partners[part] if plan is not None and plan.partners is not None else part[:0]
            others = [found if (found := decoded(int(index))) is not None else blank for index in partners]
            pixels = [image if image is not None else blank for image in images]
            run = functools.partial(forward, pixels, others, part, plan)
            return (run() if on_cpu else run), [image is None for image in images]

        def compute(indices: IntArray, plan: ViewPlan | None) -> Iterator[Rows]:
            parts = [indices[start : start + batch] for start in range(0, len(indices), batch)]
            kept: list[Rows] = []
            threads = runtime.threads or cores()
            with without_kernel_tuning(exact=True):  # cuDNN would round to TF32 by itself
                for found, bad in ordered_map(lambda part: work(part, plan), parts, threads, AHEAD * threads):
                    rows = found() if callable(found) else found
                    rows[bad] = np.nan
                    kept.append(rows)
                    if sum(map(len, kept)) >= PIECE:
                        yield np.concatenate(kept)
                        kept = []
            if kept:
                yield np.concatenate(kept)

        yield compute


def frozen_module(module: nn.Module, size: int, device: torch.device) -> nn.Module:
    """The network ready for features: in evaluation mode, batch norms folded into the convolutions."""
    module = module.eval().to(device)
    module.to(memory_format=torch.channels_last)
    if any(isinstance(part, nn.BatchNorm2d) for part in module.modules()):
        from longshift.nn import fold_frozen_norms  # imports timm: seconds that runs on vectors save

        fold_frozen_norms(module, torch.rand(2, 3, size, size, device=device))
    return module


def _scaled(pixels: list[npt.NDArray[np.uint8]], device: torch.device) -> Tensor:
    """(B, 3, H, W) in [0, 1]."""
    return scale_pixels(torch.from_numpy(np.stack(pixels)).to(device), torch.float32)


def _index(manifest: Manifest, version: str, network: FrozenNetwork, request: FeatureRequest) -> dict[str, Any]:
    """What the features are made from: for people who look into the cache, and to find features of earlier images."""
    return {
        "format": FORMAT, "dataset": manifest.name, "root": os.path.abspath(manifest.root or ""),
        "prefix": manifest.prefix, "images": len(manifest), "manifest": manifest.fingerprint(), "version": version,
        "network": network.name, "weights": network.weights_hash, "size": request.size,
        "inputs": [list(network.backbone.mean), list(network.backbone.std), network.backbone.pad_type],
        "length": network.feature_dim, "copies": request.recipe.key() if request.views > 1 else None,
    }  # fmt: skip


def _need_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise LongshiftError(
            f"The features need {needed / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free in {folder.parent}. Set "
            "LONGSHIFT_CACHE to a folder on a larger disk, or use fewer views."
        )
