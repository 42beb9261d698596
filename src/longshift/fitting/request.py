"""What a fit is asked for. Importing this module does not import PyTorch, so that mistakes are reported at once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer, field_validator

from longshift.data import Manifest, keep_images, load_dataset, require_dataset
from longshift.errors import ConfigError, UsageError, unknown_name
from longshift.io import replacing, split_paths
from longshift.methods import StyleConfig, key_mistakes
from longshift.settings import find_target
from longshift.text import some

EXPECTED = (
    "a path (folder, .zip, table or vectors), a Dataset of (image, label, domain), or arrays: fit(X, y, domains) with "
    "X of shape (N, length)"
)
LATER = ("compare", "what_if_labeled")  # what a later call for the same folder may add

# Under which heading `longshift fit --help` lists a field.
_MODEL: dict[str, Any] = {"panel": "Method and network"}
_STYLE: dict[str, Any] = {"panel": "Style mixing"}
_TRAINING: dict[str, Any] = {"panel": "Training"}
_SEEDS: dict[str, Any] = {"panel": "Seeds"}


class FitRequest(BaseModel):
    """The options of `longshift fit` and the keyword arguments of `longshift.fit`.

    Example:
        >>> FitRequest(data="hospitals/", minutes=10).method
        'auto'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    data: str = Field(min_length=1)
    """Folder site/class/image, .zip, .csv, .parquet, .npz, hf://owner/name, 'digits' or 'pacs-features'."""
    target: str | None = None
    """Hold out this site only; by default each in turn."""
    minutes: float | None = Field(default=None, gt=0)
    """Stop training after about this time, which the runs share equally."""
    compare: bool = False
    """Also train ERM, BSoftmax, NDCL-plus and, for a head, logistic."""
    what_if_labeled: bool = False
    """Simulate at the held-out sites how much 10 to 100 labels would help."""
    method: str = Field(default="auto", json_schema_extra=_MODEL)
    """See `longshift methods`; auto: ndcl_plus or, for a head, the better of it and logistic."""
    hparams: dict[str, float | int | str | bool] = Field(default_factory=dict, json_schema_extra=_MODEL)
    """Set a hyper-parameter of the method; repeatable."""
    style: StyleConfig | None = Field(default=None, json_schema_extra=_STYLE)
    """Style mixing of training images; by default it is tried where the method mixes styles."""
    network: str = Field(default="auto", json_schema_extra=_MODEL)
    """fast, balanced, best or any backbone; with commas, the features of all; auto: by the images."""
    pretrained: bool | None = Field(default=None, json_schema_extra=_MODEL)
    """Start from the published weights of the backbone; by default if they can be downloaded."""
    weights: str | None = Field(default=None, json_schema_extra=_MODEL)
    """Start from the weights in a .safetensors file; for several networks, one file each, with commas."""
    image_size: int = Field(default=0, ge=0, le=1024, json_schema_extra=_MODEL)
    """Pixels per side; 0: chosen for data and machine."""
    trainable: Literal["all", "head"] | None = Field(default=None, json_schema_extra=_MODEL)
    """all: the whole network; head: only a head on its features; default: head without a GPU."""
    head: Literal["mlp", "linear"] = Field(default="mlp", json_schema_extra=_MODEL)
    """Head on features or vectors; mlp has a hidden layer of 256 units."""
    views: int = Field(default=1, ge=1, le=8, json_schema_extra=_MODEL)
    """Versions of each image for a head: itself and views - 1 copies."""
    steps: int | None = Field(default=None, ge=1, json_schema_extra=_TRAINING)
    """Training steps of each run; by default chosen by the size of the data."""
    average: Literal["auto", "none", "ema", "swa"] = Field(default="auto", json_schema_extra=_TRAINING)
    """Keep the average of the weights over the steps; auto: swa for a whole network with starting weights."""
    split_seed: int = Field(default=0, ge=0, json_schema_extra=_SEEDS)
    """Seed of the splits."""
    train_seed: int = Field(default=0, ge=0, json_schema_extra=_SEEDS)
    """Seed of training."""

    @field_validator("data", mode="before")
    @classmethod
    def _plain_path(cls, value: Any) -> Any:
        """Paths with and without a slash at the end are one path."""
        if isinstance(value, str) and (not value or "://" in value):
            return value
        return os.path.normpath(value) if isinstance(value, (str, os.PathLike)) else value

    @field_validator("weights", mode="before")
    @classmethod
    def _plain_paths(cls, value: Any) -> Any:
        return ",".join(map(cls._plain_path, split_paths(value))) if isinstance(value, (str, os.PathLike)) else value

    @field_serializer("style")
    def _stated_style(self, style: StyleConfig | None) -> dict[str, Any] | None:
        return None if style is None else style.model_dump(include=style.model_fields_set)

    @property
    def style_is_chosen(self) -> bool:
        """Whether the user chose whether styles are mixed: then it is not tried."""
        return self.style is not None and "mix" in self.style.model_fields_set

    def identity(self) -> dict[str, Any]:
        """What a resumed fit must share with the one that was interrupted."""
        return self.model_dump(exclude=set(LATER))


def make_request(data: str | os.PathLike[str], options: Mapping[str, Any]) -> FitRequest:
    """Check the options of a fit; all mistakes are reported at once. None stands for the default."""
    given = {key: value for key, value in options.items() if value is not None}
    try:
        return FitRequest.model_validate({"data": data, **given})
    except ValidationError as error:
        raise ConfigError([text for _, text in key_mistakes(error, FitRequest.model_fields)], "the fit") from error


def open_data(request: FitRequest) -> Manifest:
    """Read the data of a fit and check that it has the site to hold out."""
    require_dataset(request.data)
    manifest = load_dataset(request.data)
    held_out_sites(manifest, request.target)
    return manifest


def held_out_sites(manifest: Manifest, target: str | None) -> tuple[str, ...]:
    """The sites to hold out in turn: all, or the one that is asked for.

    Raises:
        UsageError: There is no such site; the message names all.
    """
    if target is None:
        return manifest.domain_names
    if not target.strip():
        raise UsageError(f"--target: expected one of {', '.join(manifest.domain_names)}, got an empty name")
    try:
        return (find_target(manifest, target),)
    except UsageError as error:
        # Someone with four hospitals needs all their names, not only the most similar one.
        hint = unknown_name(f"site of {manifest.name}", target, manifest.domain_names)
        more = "" if "known:" in hint else f" The sites are {some(manifest.domain_names, 20)}."
        raise UsageError(f"--target: {hint}{more}") from error


def keep_samples(x: Any, y: Any, domains: Any, folder: Path) -> Path:
    """Write arrays or a PyTorch `Dataset` to a file in `folder`, so that a fit can resume and be evaluated again.

    Raises:
        TypeError: They are neither.
    """
    if y is None and domains is None and hasattr(x, "__getitem__") and not hasattr(x, "__array__"):
        return keep_images(x, folder)
    if y is None or domains is None or not hasattr(x, "__len__"):
        missing = "" if y is not None and domains is not None else " without y and domains"
        raise TypeError(f"Expected `data` to be {EXPECTED}, got {type(x).__name__}{missing}.")
    vectors = np.ascontiguousarray(x, dtype=np.float32)
    labels, sites = (np.asarray(values).astype(str) for values in (y, domains))
    if vectors.ndim != 2 or labels.shape != (len(vectors),) or sites.shape != (len(vectors),):
        raise UsageError(
            f"Expected X of shape (N, length) with y and domains of shape (N,), got {vectors.shape}, {labels.shape} "
            f"and {sites.shape}"
        )
    digest = hashlib.sha256(vectors.tobytes())
    for values in (labels, sites):
        digest.update("\0".join(values.tolist()).encode())
    file = folder / f"vectors-{digest.hexdigest()[:12]}.npz"
    if not file.exists():
        with replacing(file) as temporary, temporary.open("wb") as out:
            np.savez(out, x=vectors, label=labels, domain=sites)
    return file
