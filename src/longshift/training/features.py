"""Features of images from a frozen network: each is computed once and kept, whatever dataset the image is in.

    $LONGSHIFT_CACHE/features/KEY/rows.bin     float32 features, one row after the other; only ever appended to
    $LONGSHIFT_CACHE/features/KEY/keys.bin     SHA-256 of what each row is made from: of an image, of its file's bytes
    $LONGSHIFT_CACHE/features/KEY/index.json   the network, for people who look into the cache

KEY names the network with its weights, the image size, how images are cropped and normalized; for networks of a plugin,
also its code.
`fit`, `predict`, `evaluate`, `suggest` and `embed` share it. After a kill, whole rows are kept.

Copies of images are augmented, and styled after an image of another domain. Copy v of image i depends on v, i, the
dataset and the recipe alone, so that it can be computed at any time and in any batch, and runs with other targets,
settings and seeds share it. The partner of a styled copy may therefore be any image of another domain; a run leaves out
the copies whose partner is not one of its training images.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from longshift.array_types import FloatArray, IntArray
from longshift.data import (
    PLAIN,
    BadImage,
    Manifest,
    Preprocessing,
    Store,
    cache_folder,
    content_hashes,
    cores,
    data_version,
    open_source,
    ordered_map,
    read_pixels,
)
from longshift.errors import LongshiftError, UsageError
from longshift.io import cannot_write, content_hash, locked, write_json
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

    def keys(self, hashes: Sequence[str], manifest: str) -> list[str]:
        """SHA-256 of what each copy is made from; that of the image where it has no bytes."""
        about = content_hash([self.recipe.key(), self.view, manifest])
        return [
            hashlib.sha256(f"{about} {i} {own} {hashes[other]}".encode()).hexdigest() if len(own) == SHA256 else own
            for i, (own, other) in enumerate(zip(hashes, self.style_samples.tolist(), strict=True))
        ]

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


FORMAT = 2
AHEAD = 2  # batches per thread that wait in memory: decoded images are large
SHA256 = 64  # characters; an image without bytes has a word in the place of its hash
log = logging.getLogger("longshift")
Rows = npt.NDArray[np.float32]


class FeatureFile:
    """Rows of `columns` numbers with their keys, in two files that only grow; a row counts with its whole key."""

    def __init__(self, folder: Path, columns: int) -> None:
        self.rows, self.keys, self.columns = folder / "rows.bin", folder / "keys.bin", columns

    def count(self) -> int:
        """The number of whole rows."""
        sizes = ((self.rows, 4 * self.columns), (self.keys, 32))
        return min(file.stat().st_size // width if file.exists() else 0 for file, width in sizes)

    def places(self) -> dict[str, int]:
        """The row of each key."""
        keys = self.keys.read_bytes().hex() if (count := self.count()) else ""
        return {keys[SHA256 * row : SHA256 * (row + 1)]: row for row in range(count)}

    def take(self, keys: Sequence[str]) -> Rows:
        """Rows by their keys, NaN without one; memory-mapped if they lie one after the other."""
        known = self.places()
        if not (known and keys):
            return np.full((len(keys), self.columns), np.nan, dtype=np.float32)
        places = np.array([known.get(key, -1) for key in keys], dtype=np.int64)
        kept: Rows = np.memmap(self.rows, dtype=np.float32, mode="r", shape=(len(known), self.columns))
        if places[0] >= 0 and (places == np.arange(places[0], places[0] + len(places))).all():
            return kept[places[0] : places[0] + len(places)]
        found = kept[places]
        found[places < 0] = np.nan
        return found

    @contextmanager
    def appending(self) -> Iterator[Callable[[Sequence[str], Rows], None]]:
        """A function that writes rows with their keys; one process at a time."""
        count = self.count()
        with self.rows.open("ab") as rows, self.keys.open("ab") as keys:
            rows.truncate(count * 4 * self.columns)
            keys.truncate(count * 32)

            def write(names: Sequence[str], found: Rows) -> None:
                for file, data in ((rows, found.tobytes()), (keys, bytes.fromhex("".join(names)))):
                    file.write(data)
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
        name = config.backbone_name
        backbone = make_backbone(name, pretrained=config.pretrained, weights=weights, size=config.size)
        return cls(name, replace(backbone, preprocessing=PLAIN) if config.preprocessing == "resize" else backbone)


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


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images by number: the SHA-256 of their bytes (a word where there are none), and a function that reads them."""

    hashes: Sequence[str]
    read: Callable[[int], bytes]  # from several threads; raises BadImage

    def pixels(self, index: int, size: int, how: Preprocessing = PLAIN) -> npt.NDArray[np.uint8] | None:
        """The image at this size, None if it cannot be read."""
        try:
            data = self.read(index)
            if hashlib.sha256(data).hexdigest() != self.hashes[index]:
                raise LongshiftError("images changed while they were read. Run again.")
            return read_pixels(data, size, how)
        except BadImage:
            return None


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
    plans = [ViewPlan(manifest, request.recipe, view) for view in range(1, request.views)]
    with open_source(manifest) as source:
        hashes = content_hashes(manifest, runtime.cache)
        images = ImageSet(hashes, lambda index: source.read(manifest.paths[index]))
        keys = [*hashes, *(key for plan in plans for key in plan.keys(hashes, manifest.fingerprint()))]
        rows = image_features(images, network, request.size, runtime=runtime, tick=tick, keys=keys, plans=plans)
    shown = np.concatenate([np.arange(len(manifest)), *(plan.style_samples for plan in plans)]) if plans else None
    name = content_hash([feature_folder(network, request.size).name, keys])[:32]
    version = data_version(manifest, runtime.cache)
    return Store(manifest, rows, request.size, name, request.views, shown, version)


def image_features(
    images: ImageSet,
    network: FrozenNetwork,
    size: int,
    *,
    runtime: Runtime,
    tick: Tick = silent,
    keys: Sequence[str] = (),
    plans: Sequence[ViewPlan] = (),
) -> Rows:
    """Features of images, then of each view of them; what is not in the cache is computed and kept.

    Args:
        images: The images.
        network: What computes the features.
        size: Pixels that images are resized to.
        runtime: Cache, device, threads and batch size.
        tick: Called with the number of finished rows.
        keys: SHA-256 of what each row is made from; by default those of the images.
        plans: How the copies of the views after the first are made.

    Returns:
        One row per key, NaN for images that cannot be read.
    """
    keys = keys or images.hashes
    kept = feature_folder(network, size, runtime.cache)
    if set(keys) <= FeatureFile(kept, network.feature_dim).places().keys():
        tick(len(keys))
        return FeatureFile(kept, network.feature_dim).take(keys)
    with _writable(kept) as folder:
        file = FeatureFile(folder, network.feature_dim)
        try:
            with locked(folder / ".lock", lambda: tick(0, "waiting for the process that computes these features")):
                known = file.places()
                # Copies of an image have one row.
                new = {key: row for row, key in enumerate(keys) if key not in known and len(key) == SHA256}
                tick(len(keys) - len(new))
                _need_room(folder, len(new) * file.columns * 4)
                write_json(folder / "index.json", {**_identity(network, size), "length": file.columns})
                rows = np.array(sorted(new.values()), dtype=np.int64)
                with file.appending() as write:
                    for part, found, good in _computed(images, rows, network, size, runtime, plans):
                        write([keys[row] for row in part[good]], found[good])
                        tick(len(part))
        except OSError as error:
            raise cannot_write(folder, error) from error
        return file.take(keys)


def feature_folder(network: FrozenNetwork, size: int, cache: Path | None = None) -> Path:
    """Where the features of a network are kept."""
    return cache_folder(cache) / "features" / content_hash(_identity(network, size))[:32]


def _identity(network: FrozenNetwork, size: int) -> dict[str, Any]:
    backbone, code = network.backbone, backbone_version(network.name)
    return {
        "format": FORMAT, "size": size, "network": network.name, "weights": network.weights_hash,
        "inputs": [backbone.mean, backbone.std, backbone.pad_type], **({"code": code} if code else {}),
        **({} if backbone.preprocessing == PLAIN else {"preprocessing": asdict(backbone.preprocessing)}),
    }  # fmt: skip


@contextmanager
def _writable(folder: Path) -> Iterator[Path]:
    """The folder; a temporary one where it cannot be written, as on a machine that only predicts."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        yield folder
    else:
        log.warning("%s cannot be written: features are not kept", folder)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)


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
    with open_source(store.manifest) as source:
        for index in np.flatnonzero(~usable_rows(store)):
            path = store.manifest.paths[index]
            try:
                read_pixels(source.read(path), store.size)
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


def _computed(
    images: ImageSet, rows: IntArray, network: FrozenNetwork, size: int, runtime: Runtime, plans: Sequence[ViewPlan]
) -> Iterator[tuple[IntArray, Rows, npt.NDArray[np.bool_]]]:
    """Batches of rows with their features, and which of them could be read.

    On a CPU, each thread takes small batches by itself: they stay in its cache, and no thread waits for another, which
    on a busy machine costs more than the work. On a GPU one thread computes and the others decode. Batches are filled
    up to one size: so the features of an image do not depend on what is in the cache.
    """
    if not len(rows):
        return
    where, n = resolve_device(runtime.device), len(images.hashes)
    on_cpu = where.type == "cpu"
    backbone, batch, threads = network.backbone, runtime.images_at_once(on_cpu), runtime.threads or cores()
    module = frozen_module(backbone.module, size, where)
    mean, std = channel_tensor(backbone.mean, where), channel_tensor(backbone.std, where)
    blank = np.zeros((size, size, 3), dtype=np.uint8)
    read = functools.partial(images.pixels, size=size, how=backbone.preprocessing)

    def forward(pixels: list[npt.NDArray[np.uint8]], others: list[npt.NDArray[np.uint8]], part: IntArray) -> Rows:
        with torch.inference_mode():
            scaled = _scaled(pixels + [blank] * (batch - len(part)), where)
            if others:
                plan = plans[part[0] // n - 1]
                scaled[: len(part)] = plan.apply(scaled[: len(part)], _scaled(others, where), part % n, mean)
            inputs = ((scaled - mean) / std).contiguous(memory_format=torch.channels_last)
            features: Rows = module(inputs)[: len(part)].float().cpu().numpy()
            return features

    def work(part: IntArray) -> tuple[IntArray, Rows | Callable[[], Rows], npt.NDArray[np.bool_]]:
        found = [read(int(index)) for index in part % n]
        styles = plans[part[0] // n - 1].style_samples[part % n] if part[0] >= n else part[:0]
        others = [image if (image := read(int(index))) is not None else blank for index in styles]
        pixels = [image if image is not None else blank for image in found]
        run = functools.partial(forward, pixels, others, part)
        return part, run() if on_cpu else run, np.array([image is not None for image in found])

    views = [rows[rows // n == view] for view in range(len(plans) + 1)]
    parts = [view[start : start + batch] for view in views for start in range(0, len(view), batch)]
    with use_threads(1 if on_cpu else 0), without_kernel_tuning(exact=True):  # cuDNN would round to TF32 by itself
        for part, found, good in ordered_map(work, parts, threads, AHEAD * threads):
            yield part, found() if callable(found) else found, good


def frozen_module(module: nn.Module, size: int, device: torch.device) -> nn.Module:
    """A copy of the network for features: in evaluation mode, batch norms folded into the convolutions."""
    from longshift.nn import fold_frozen_norms, use_onednn  # imports timm: seconds that runs on vectors save

    module = copy.deepcopy(module).eval().to(device)
    module.to(memory_format=torch.channels_last)
    if any(isinstance(part, nn.BatchNorm2d) for part in module.modules()):
        fold_frozen_norms(module, torch.rand(2, 3, size, size, device=device))
    if device.type == "cpu":
        use_onednn(module)
    return module


def _scaled(pixels: list[npt.NDArray[np.uint8]], device: torch.device) -> Tensor:
    """(B, 3, H, W) in [0, 1]."""
    return scale_pixels(torch.from_numpy(np.stack(pixels)).to(device), torch.float32)


def _need_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise LongshiftError(
            f"The features need {needed / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free in {folder.parent}. Set "
            "LONGSHIFT_CACHE to a folder on a larger disk, or use fewer views."
        )
